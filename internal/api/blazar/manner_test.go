package blazar

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/storetest"
)

func TestErrorShapes(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, c := range []struct {
		method, path, body string
		header             string
		status             int
		want               map[string]any
	}{
		{"GET", "/v1/leases/nobody", "", "", 404, map[string]any{"error_code": 404.0, "error_name": 404.0, "error_message": "Object with {'lease_id': 'nobody'} not found"}},
		{"GET", "/v1/os-hosts/x", "", "", 404, map[string]any{"error_code": 404.0, "error_name": 404.0, "error_message": "Object with {'host': 'x'} not found"}},
		{"GET", "/v1/nothing", "", "", 404, map[string]any{"error": 404.0, "error_message": "The requested URL was not found on the server."}},
		{"GET", "/v1/leases/", "", "", 404, map[string]any{"error": 404.0, "error_message": "The requested URL was not found on the server."}},
		{"GET", "/v1", "", "", 404, map[string]any{"error": 404.0, "error_message": "The requested URL was not found on the server."}},
		{"PATCH", "/v1/leases", "{}", "", 405, map[string]any{"error": 405.0, "error_message": "The method PATCH is not allowed for this resource."}},
		{"GET", "/v1/leases", "", "OpenStack-API-Version: reservation 1.1", 406, map[string]any{"error": 406.0,
			"error_message": "Version 1.1 is not supported by the API. Minimum is 1.0 and maximum is 1.0."}},
		{"GET", "/v1/leases", "", "OpenStack-API-Version: reservation 1.a", 400, map[string]any{"error": 400.0,
			"error_message": "API Version String '1.a' is of invalid format. Must be of format MajorNum.MinorNum."}},
		{"POST", "/v1/leases", "name=x", "Content-Type: application/x-www-form-urlencoded", 400, map[string]any{"error": 400.0,
			"error_message": "Content type 'application/x-www-form-urlencoded' isn't supported; use application/json."}},
	} {
		var headers []string
		if c.header != "" {
			headers = append(headers, c.header)
		}
		a := s.expect(c.status, c.method, c.path, c.body, headers...)
		if d := cmp.Diff(c.want, a.body); d != "" {
			t.Errorf("%s %s: %s", c.method, c.path, d)
		}
	}
	if allow := s.expect(405, "PATCH", "/v1/leases", "{}").header.Get("Allow"); allow != "GET, POST" {
		t.Errorf("Allow: %s", allow)
	}
}

func TestHeadersOfAnswers(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, header := range []string{"", "OpenStack-API-Version: reservation latest", "OpenStack-API-Version: reservation 1.0",
		"OpenStack-API-Version: compute 2.90"} {
		var headers []string
		if header != "" {
			headers = append(headers, header)
		}
		a := s.expect(200, "GET", "/v1/leases", "", headers...)
		if a.header.Get("OpenStack-API-Version") != "reservation 1.0" || a.header.Get("Vary") != "OpenStack-API-Version" ||
			!strings.HasPrefix(a.header.Get("X-Openstack-Request-Id"), "req-") {
			t.Errorf("%s: %v", header, a.header)
		}
	}
	if a := s.expect(404, "GET", "/v1/leases/x", ""); a.header.Get("OpenStack-API-Version") != "reservation 1.0" {
		t.Errorf("an error of a handler: %v", a.header)
	}
	if a := s.expect(404, "GET", "/v1/x", ""); a.header.Get("OpenStack-API-Version") != "" {
		t.Errorf("an unknown path: %v", a.header)
	}
}

func TestVersionsNeedNoToken(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, path := range []string{"", "/", "/versions"} {
		a := s.as("", "GET", path, "")
		v, _ := a.body["versions"].([]any)
		if a.status != http.StatusMultipleChoices || len(v) != 1 {
			t.Fatalf("%q: %d %s", path, a.status, a.raw)
		}
		href := v[0].(map[string]any)["links"].([]any)[0].(map[string]any)["href"]
		if v[0].(map[string]any)["id"] != "v1.0" || href != s.url+"/v1" {
			t.Errorf("%s", a.raw)
		}
	}
	a := s.as("", "GET", "/v1/leases", "")
	inner, _ := a.body["error"].(map[string]any)
	if a.status != 401 || inner["title"] != "Unauthorized" {
		t.Errorf("%d %v %s", a.status, a.header, a.raw)
	}
}

func TestLeasesBelongToTheirProject(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	path := "/v1/leases/" + s.lease("alice:red", "gold", 1, 2)["id"].(string)
	for _, c := range []struct {
		token, method, path, body string
		status                    int
	}{
		{"bob:blue", "GET", path, "", 403},
		{"bob:blue", "PUT", path, `{"name":"x"}`, 403},
		{"bob:blue", "DELETE", path, "", 403},
		{"rita:red", "GET", path, "", 200},
		{"admin", "GET", path, "", 200},
		{"notused", "GET", path, "", 200},
		{"alice:red", "GET", "/v1/os-hosts", "", 403},
		{"alice:red", "POST", "/v1/os-hosts", `{"name":"x"}`, 403},
		{"alice:red", "GET", "/v1/os-hosts/allocations", "", 403},
		{"alice:red", "GET", "/v1/os-hosts/properties", "", 403},
		{"loner", "GET", "/v1/leases", "", 403},
	} {
		if a := s.as(c.token, c.method, c.path, c.body); a.status != c.status {
			t.Errorf("%s %s %s: want %d, got %d %s", c.token, c.method, c.path, c.status, a.status, a.raw)
		}
	}
	reader := s.as("rita:red", "PUT", path, `{"name":"x"}`, "X-Roles: reader")
	if reader.status != 403 || !strings.Contains(reader.raw, "blazar:leases:put") {
		t.Errorf("a reader: %d %s", reader.status, reader.raw)
	}
	for token, want := range map[string]int{"alice:red": 1, "bob:blue": 0, "admin": 1} {
		if all := s.as(token, "GET", "/v1/leases.json", "").body["leases"].([]any); len(all) != want {
			t.Errorf("%s sees %d leases", token, len(all))
		}
	}
}

func TestLeasesAreListedByPages(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	var ids []string
	for i := range 5 {
		token := "alice:red"
		if i == 2 {
			token = "bob:blue"
		}
		ids = append(ids, s.lease(token, "gold", i, i+1)["id"].(string))
	}
	for _, c := range []struct {
		token, query string
		want         []int
	}{
		{"admin", "", []int{0, 1, 2, 3, 4}},
		{"admin", "?limit=2", []int{0, 1}},
		{"admin", "?limit=2&marker=" + ids[1], []int{2, 3}},
		{"admin", "?limit=9&marker=" + ids[3], []int{4}},
		{"admin", "?marker=" + ids[4], nil},
		{"admin", "?sort=name&limit=&marker=", []int{0, 1, 2, 3, 4}},
		{"alice:red", "?limit=2&marker=" + ids[1], []int{3, 4}},
		{"bob:blue", "?limit=2", []int{2}},
	} {
		var got []int
		for _, l := range s.as(c.token, "GET", "/v1/leases"+c.query, "").body["leases"].([]any) {
			got = append(got, slices.Index(ids, l.(map[string]any)["id"].(string)))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s %s: %s", c.token, c.query, d)
		}
	}
	for _, query := range []string{"?limit=0", "?limit=-1", "?limit=many", "?limit=99999999999999999999", "?marker=x", "?marker=" + uuid.NewString()} {
		s.expect(400, "GET", "/v1/leases"+query, "")
	}
	if a := s.as("bob:blue", "GET", "/v1/leases?marker="+ids[0], ""); a.status != 400 {
		t.Errorf("another project's marker: %d %s", a.status, a.raw)
	}
}

func TestDeleteAnswersWhenItIsDone(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	path := "/v1/leases/" + s.lease("admin", "gold", 1, 2)["id"].(string)
	a := s.expect(204, "DELETE", path, "")
	if a.raw != "" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%v %q", a.header, a.raw)
	}
	s.expect(404, "DELETE", path, "")

	id := s.started()
	path = "/v1/leases/" + id.String()
	slow := s.expect(202, "DELETE", path, "") // no worker is there
	l := slow.body["lease"].(map[string]any)
	if sentence := l["berth:why"].(map[string]any)["sentence"].(string); !strings.Contains(sentence, "being deleted") {
		t.Errorf("why: %s", sentence)
	}
	s.expect(409, "PUT", path, `{"name":"x"}`)

	s.serve(2 * time.Minute)
	done := make(chan error, 1)
	go func() { done <- s.worker(id) }()
	s.expect(204, "DELETE", path, "")
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.expect(404, "GET", path, "")
}

// started brings a lease to STARTING.
func (s *service) started() uuid.UUID {
	s.Helper()
	id := uuid.MustParse(s.lease("admin", "gold", 1, 2)["id"].(string))
	storetest.Exec(s, s.db, `update lease set start_at = now() where id = $1`, id)
	storetest.Exec(s, s.db, `update event set at = now() where lease_id = $1 and event_type = 'start_lease'`, id)
	if _, err := s.store.BeginLease(s.Context(), id, lease.Start); err != nil {
		s.Fatal(err)
	}
	return id
}

// worker does what the lease's workflow does with a deletion.
func (s *service) worker(id uuid.UUID) error {
	time.Sleep(s.pause())
	l, err := s.store.BeginLease(s.Context(), id, lease.Delete)
	if err != nil {
		return err
	}
	for _, r := range l.Reservations {
		if err := s.store.UnwireReservation(s.Context(), r.ID); err != nil {
			return err
		}
	}
	_, err = s.store.FinishLease(s.Context(), id, lease.Delete, nil)
	return err
}

// pause lets the DELETE look at least once before the worker is done.
func (s *service) pause() time.Duration { return 60 * time.Millisecond }

func TestHostsOverREST(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.hypervisor("cmp-1")
	a := s.expect(201, "POST", "/v1/os-hosts", `{"name":"cmp-1","gpu":"True","rack":7,"vcpus":"99"}`)
	h := a.body["host"].(map[string]any)
	path := "/v1/os-hosts/" + h["id"].(string)
	stamps(t, h, "id", "created_at")
	want := map[string]any{"hypervisor_hostname": "cmp-1", "service_name": "cmp-1", "hypervisor_type": "QEMU", "hypervisor_version": 0.0,
		"vcpus": "99", "memory_mb": 0.0, "local_gb": 0.0, "cpu_info": "", "availability_zone": "", "reservable": true, "status": nil,
		"trust_id": nil, "updated_at": nil, "gpu": "True", "rack": "7"}
	if d := cmp.Diff(want, h); d != "" {
		t.Error(d)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/v1/os-hosts", `{"name":"cmp-1"}`, 409},
		{"POST", "/v1/os-hosts", `{"name":"nobody"}`, 404},
		{"POST", "/v1/os-hosts", `{"name":"a\u0000"}`, 400},
		{"POST", "/v1/os-hosts", `{"gpu":"x"}`, 403},
		{"POST", "/v1/os-hosts", `{"name":7}`, 400},
		{"POST", "/v1/os-hosts", `{"name":"cmp-1","` + strings.Repeat("k", 65) + `":"x"}`, 400},
		{"POST", "/v1/os-hosts", `{"name":"cmp-1","":"x"}`, 400},
		{"POST", "/v1/os-hosts", `{"name":"cmp-1","gpu":{}}`, 400},
		{"POST", "/v1/os-hosts", `{"name":"cmp-1","gpu":"\u0000"}`, 400},
		{"PUT", path, `{}`, 400},
		{"PUT", path, `{"hypervisor_hostname":"x"}`, 400},
		{"PUT", path, `{"gpu":"False"}`, 200},
		{"PUT", "/v1/os-hosts/999", `{"gpu":"False"}`, 404},
		{"GET", "/v1/os-hosts/99999999999999999999", "", 404},
		{"GET", "/v1/os-hosts/-1", "", 404},
		{"GET", path, "", 200},
		{"GET", path + "/allocation", "", 200},
		{"GET", "/v1/os-hosts/0/allocation", "", 404},
		{"GET", "/v1/os-hosts/999/allocation", "", 404},
		{"GET", "/v1/os-hosts/9223372036854775807/allocation", "", 404},
		{"PATCH", "/v1/os-hosts/properties/gpu", `{"private":true}`, 200},
		{"PATCH", "/v1/os-hosts/properties/gpu", `{"private":"yes"}`, 400},
		{"PATCH", "/v1/os-hosts/properties/gpu", `{}`, 400},
		{"PATCH", "/v1/os-hosts/properties/none", `{"private":true}`, 404},
		{"PATCH", "/v1/os-hosts/properties/%00", `{"private":true}`, 404},
		{"PATCH", "/v1/os-hosts/properties/%ff", `{"private":true}`, 404},
	} {
		if a := s.as("admin", c.method, c.path, c.body); a.status != c.status {
			t.Errorf("%s %s %s: want %d, got %d %s", c.method, c.path, c.body, c.status, a.status, a.raw)
		}
	}
	properties := s.expect(200, "GET", "/v1/os-hosts/properties?detail=True&all=True", "").body["resource_properties"].([]any)
	if d := cmp.Diff(map[string]any{"property": "gpu", "private": true, "values": []any{"False"}}, properties[0]); d != "" || len(properties) != 3 {
		t.Errorf("%v %s", properties, d)
	}
	if public := s.expect(200, "GET", "/v1/os-hosts/properties", "").body["resource_properties"].([]any); len(public) != 2 {
		t.Errorf("public: %v", public)
	}
	s.expect(204, "DELETE", path, "")
	s.expect(404, "GET", path, "")
}

func TestAllocationsOverREST(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	l := s.lease("admin", "gold", 1, 2)
	r := l["reservations"].([]any)[0].(map[string]any)
	host := s.expect(200, "GET", "/v1/os-hosts", "").body["hosts"].([]any)[0].(map[string]any)["id"]
	want := map[string]any{"resource_id": host, "reservations": []any{map[string]any{"id": r["id"], "lease_id": l["id"],
		"start_date": l["start_date"], "end_date": l["end_date"]}}}
	empty := map[string]any{"resource_id": host, "reservations": []any{}}
	for query, expected := range map[string]any{"": want, "?lease_id=" + l["id"].(string): want, "?lease_id=x": empty,
		"?reservation_id=" + uuid.NewString(): empty, "?what=ever": want} {
		a := s.expect(200, "GET", "/v1/os-hosts/allocations"+query, "")
		if d := cmp.Diff([]any{expected}, a.body["allocations"]); d != "" {
			t.Errorf("%q: %s", query, d)
		}
	}
	a := s.expect(200, "GET", "/v1/os-hosts/"+host.(string)+"/allocation", "")
	if d := cmp.Diff(want, a.body["allocation"]); d != "" {
		t.Error(d)
	}
	s.expect(409, "DELETE", "/v1/os-hosts/"+host.(string), "")
}
