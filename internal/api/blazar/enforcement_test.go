package blazar

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/identity"
)

func TestEnforcement_AskedBeforeAnyWrite(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	var asked []Check
	errorBody := ""
	s.serveAPI(&handler{
		deletionWait: time.Hour,
		Options: Options{Store: s.store.Lease, Identity: identity.Noauth{},
			Enforce: func(_ context.Context, c Check) string { asked = append(asked, c); return errorBody }},
	})
	body := `{"name":"gold","start_date":"2040-01-01 10:00","end_date":"2040-01-01 12:00","reservations":[{"resource_type":"physical:host",
		"min":1,"max":1,"hypervisor_properties":"","resource_properties":""}]}`

	errorBody = "no money"
	if a := s.as("alice:red", "POST", "/v1/leases", body); a.status != 400 ||
		!strings.Contains(a.raw, "no money") {
		t.Errorf(
			"create a lease that the enforcement service refuses: got %d %s, want 400 with its reason",
			a.status,
			a.raw,
		)
	}
	if all := s.expect(200, "GET", "/v1/leases", ""); len(all.body["leases"].([]any)) != 0 {
		t.Errorf("leases after a refused creation: got %s, want none", all.raw)
	}
	errorBody = ""
	made := s.as("alice:red", "POST", "/v1/leases", body)
	if made.status != 201 {
		t.Fatalf("create a lease that the enforcement service allows: got %d %s, want 201",
			made.status, made.raw)
	}
	path := "/v1/leases/" + made.body["lease"].(map[string]any)["id"].(string)
	if a := s.as("alice:red", "PUT", path, `{"name":"silver"}`); a.status != 200 {
		t.Errorf("update only the name: got %d %s, want 200 without a check", a.status, a.raw)
	}
	errorBody = "too long"
	if a := s.as("alice:red", "PUT", path, `{"end_date":"2040-01-01 13:00"}`); a.status != 400 ||
		!strings.Contains(a.raw, "too long") {
		t.Errorf("update that the enforcement service refuses: got %d %s, want 400 with its reason",
			a.status, a.raw)
	}
	if l := s.expect(200, "GET", path, "").body["lease"].(map[string]any); l["end_date"] != "2040-01-01T12:00:00.000000" ||
		l["status"] != "PENDING" {
		t.Errorf("the lease after a refused change: got %v, want the old end date and PENDING", l)
	}

	var what []string
	for _, c := range asked {
		what = append(what, c.What+" "+c.User+" "+c.Project)
	}
	if d := cmp.Diff([]string{"check-create alice red", "check-create alice red", "check-update alice red"}, what); d != "" {
		t.Fatal(d)
	}
	first, last := asked[0].Lease.(map[string]any), asked[2].Lease.(map[string]any)
	host := first["reservations"].([]any)[0].(map[string]any)["allocations"].([]any)[0].(map[string]any)
	if first["start_date"] != "2040-01-01T10:00:00" || host["hypervisor_hostname"] != "cmp-1" ||
		asked[0].Current != nil {
		t.Errorf("check-create request: got %+v, want plain dates, the host and no current lease", first)
	}
	if _, has := last["name"]; has || last["end_date"] != "2040-01-01T13:00:00" ||
		asked[2].Current.(map[string]any)["end_date"] != "2040-01-01T12:00:00" {
		t.Errorf(
			"check-update request: got %+v with the current lease %+v, want only the changed end date",
			last,
			asked[2].Current,
		)
	}
}

func TestEnforcement_GetsTheSegmentsAndDevicesOfALease(t *testing.T) {
	t.Parallel()
	s := newService(t)
	var asked []Check
	s.serveAPI(&handler{
		deletionWait: time.Hour,
		Options: Options{Store: s.store.Lease, Identity: identity.Noauth{},
			Enforce: func(_ context.Context, c Check) string { asked = append(asked, c); return "" }},
	})
	segment := s.expect(201, "POST", "/v1/networks", segmentBody).body["network"]
	device := s.expect(201, "POST", "/v1/devices", deviceBody).body["device"]

	s.expect(201, "POST", "/v1/leases", reserving(
		`{"resource_type":"network","network_name":"lab"}`,
		`{"resource_type":"device","min":1,"max":1}`,
	))
	var got []any
	for _, r := range asked[0].Lease.(map[string]any)["reservations"].([]any) {
		view, err := toMap(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, view["allocations"].([]any)...)
	}
	if d := cmp.Diff([]any{segment, device}, got); d != "" {
		t.Errorf("allocations in the request to the enforcement service (-want +got):\n%s", d)
	}
}

// The enforcement service allows each of two changes, but not both of them.
func TestEnforcement_ConcurrentChangesAreAllowedTogetherOrRefused(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	asked, path := 0, ""
	s.serveAPI(&handler{
		deletionWait: time.Hour,
		Options: Options{Store: s.store.Lease, Identity: identity.Noauth{},
			Enforce: func(_ context.Context, c Check) string {
				if c.What == "check-create" {
					return ""
				}
				if asked++; asked == 1 { // another request changes the lease after this answer
					defer func() {
						if a := s.as("bob:red", "PUT", path, `{"start_date":"2040-01-01 09:00"}`); a.status != 200 {
							t.Errorf("the other change: got %d %s, want 200", a.status, a.raw)
						}
					}()
				}
				l := c.Lease.(map[string]any)
				start, _ := time.Parse("2006-01-02T15:04:05", l["start_date"].(string))
				end, _ := time.Parse("2006-01-02T15:04:05", l["end_date"].(string))
				if end.Sub(start) > 3*time.Hour {
					return "too long"
				}
				return ""
			}},
	})
	made := s.as("alice:red", "POST", "/v1/leases", `{"name":"gold","start_date":"2040-01-01 10:00","end_date":"2040-01-01 12:00","reservations":[
		{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":"","resource_properties":""}]}`)
	path = "/v1/leases/" + made.body["lease"].(map[string]any)["id"].(string)

	a := s.as("alice:red", "PUT", path, `{"end_date":"2040-01-01 13:00"}`)

	l := s.expect(200, "GET", path, "").body["lease"].(map[string]any)
	if a.status != 400 || l["start_date"] != "2040-01-01T09:00:00.000000" || l["end_date"] != "2040-01-01T12:00:00.000000" {
		t.Errorf("a change that is too long together with the other one: got %d %s, and the lease from %v to %v; want 400, 9:00 to 12:00",
			a.status, a.raw, l["start_date"], l["end_date"])
	}
}
