package blazar

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/lease"
)

func TestHost_Allocations(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	l := s.lease("admin", "gold", 1, 2)
	r := l["reservations"].([]any)[0].(map[string]any)
	host := s.expect(200, "GET", "/v1/os-hosts", "").body["hosts"].([]any)[0].(map[string]any)["id"]
	want := map[string]any{
		"resource_id": host,
		"reservations": []any{map[string]any{
			"id":         r["id"],
			"lease_id":   l["id"],
			"start_date": l["start_date"],
			"end_date":   l["end_date"],
		}},
	}
	empty := map[string]any{"resource_id": host, "reservations": []any{}}
	for query, expected := range map[string]any{
		"":                                    want,
		"?lease_id=" + l["id"].(string):       want,
		"?lease_id=x":                         empty,
		"?reservation_id=" + uuid.NewString(): empty,
		"?what=ever":                          want,
	} {
		t.Run(query, func(t *testing.T) {
			a := s.expect(200, "GET", "/v1/os-hosts/allocations"+query, "")
			if d := cmp.Diff([]any{expected}, a.body["allocations"]); d != "" {
				t.Errorf("host allocations with the query %q (-want +got):\n%s", query, d)
			}
		})
	}
	a := s.expect(200, "GET", "/v1/os-hosts/"+host.(string)+"/allocation", "")
	if d := cmp.Diff(want, a.body["allocation"]); d != "" {
		t.Error(d)
	}
	s.expect(409, "DELETE", "/v1/os-hosts/"+host.(string), "")
}

func TestHost_CreateShowUpdateDelete(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.createHypervisor("cmp-1")
	a := s.expect(201, "POST", "/v1/os-hosts", `{"name":"cmp-1","gpu":"True","rack":7,"vcpus":"99"}`)
	h := a.body["host"].(map[string]any)
	path := "/v1/os-hosts/" + h["id"].(string)
	stamps(t, h, "id", "created_at")
	want := map[string]any{
		"hypervisor_hostname": "cmp-1",
		"service_name":        "cmp-1",
		"hypervisor_type":     "QEMU",
		"hypervisor_version":  0.0,
		"vcpus":               "99",
		"memory_mb":           0.0,
		"local_gb":            0.0,
		"cpu_info":            "",
		"availability_zone":   "",
		"reservable":          true,
		"status":              nil,
		"trust_id":            nil,
		"updated_at":          nil,
		"gpu":                 "True",
		"rack":                "7",
	}
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
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			if a := s.as("admin", c.method, c.path, c.body); a.status != c.status {
				t.Errorf("%s %s with the body %q: want status %d, got %d %s",
					c.method, c.path, c.body, c.status, a.status, a.raw)
			}
		})
	}
	s.expectError(`{"name":"cmp-1","`+strings.Repeat("k", 65)+`":"x"}`,
		errorBody{400, "Extra capability key too long: it must have at most 64 characters.", 400.0})
	properties := s.expect(200, "GET", "/v1/os-hosts/properties?detail=True&all=True", "").body["resource_properties"].([]any)
	if d := cmp.Diff(map[string]any{"property": "gpu", "private": true, "values": []any{"False"}}, properties[0]); d != "" ||
		len(properties) != 3 {
		t.Errorf(
			"list host properties with all=True: got %v, want 3 properties; the first property (-want +got):\n%s",
			properties,
			d,
		)
	}
	public := s.expect(200, "GET", "/v1/os-hosts/properties", "").body["resource_properties"].([]any)
	if len(public) != 2 {
		t.Errorf("list the public host properties: got %v, want 2 properties", public)
	}
	s.expect(204, "DELETE", path, "")
	s.expect(404, "GET", path, "")
}

func TestHost_RegisteredByNovasNames(t *testing.T) {
	t.Parallel()
	// The hypervisors of Ironic's nodes have the UUIDs of the nodes as their hostnames.
	const nodeA, nodeB = "5f0c1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b0a", "5f0c1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b0b"
	s := newService(t)
	var down error
	s.hypervisors = func(context.Context) ([]lease.Hypervisor, error) {
		return []lease.Hypervisor{
			{
				ID:               "1",
				Hostname:         "cmp-1.example.org",
				Service:          "cmp-1",
				Type:             "KVM",
				Version:          8002,
				CPUInfo:          "x86",
				AvailabilityZone: "east",
			},
			{
				ID:       "2",
				Hostname: nodeA,
				Service:  "ironic-1",
				Type:     "ironic",
			},
			{
				ID:       "3",
				Hostname: nodeB,
				Service:  "ironic-1",
				Type:     "ironic",
			},
			{ID: "4", Hostname: "cmp-4.example.org", Service: "cmp-4"},
			{ID: "5", Hostname: "absent.example.org", Service: "absent"},
			{ID: "6", Hostname: "thief.example.net", Service: "cmp-4"},
		}, down
	}
	s.serve(time.Minute)
	for _, name := range []string{"cmp-1.example.org", nodeA, nodeB, "cmp-4.example.org"} {
		s.createHypervisor(name)
	}
	want := map[string]any{
		"hypervisor_hostname": "cmp-1.example.org",
		"service_name":        "cmp-1",
		"hypervisor_type":     "KVM",
		"hypervisor_version":  8002.0,
		"vcpus":               8.0,
		"memory_mb":           0.0,
		"local_gb":            0.0,
		"cpu_info":            "x86",
		"availability_zone":   "east",
		"reservable":          true,
		"status":              nil,
		"trust_id":            nil,
		"updated_at":          nil,
	}
	uuids := s.uuids()
	for _, body := range []string{`{"name":"cmp-1.example.org"}`, `{"name":"cmp-1"}`, `{"id":"1"}`, `{"name":"1"}`, `{"name":"1.example"}`,
		`{"name":"` + uuids["cmp-1.example.org"] + `"}`} {
		h := s.expect(201, "POST", "/v1/os-hosts", body).body["host"].(map[string]any)
		path := "/v1/os-hosts/" + h["id"].(string)
		stamps(t, h, "id", "created_at")
		if d := cmp.Diff(want, h); d != "" {
			t.Errorf("register a host with the body %s (-want +got):\n%s", body, d)
		}
		s.expect(204, "DELETE", path, "")
	}
	s.expect(201, "POST", "/v1/os-hosts", `{"name":"`+nodeA+`"}`)
	for body, want := range map[string]errorBody{
		`{"name":"nobody"}`:  {404, "Host 'nobody' not found! Nova has no hypervisor with this hostname, ID or compute service.", 404.0},
		`{"name":"example"}`: {409, "Multiple hosts found matching 'example': cmp-1.example.org, cmp-4.example.org…", 409.0},
		`{"name":"thief"}`:   {409, "Compute service cmp-4 of host 'thief.example.net' belongs to another hypervisor, too.", 409.0},
		`{"name":"absent"}`:  {404, "Host 'absent.example.org' not found! Placement has no root provider with this name or UUID.", 404.0},
		`{"name":"` + nodeB + `"}`: {409, "Host " + nodeB + " cannot be registered: its compute service ironic-1 serves another registered host, and Nova's " +
			"aggregates contain whole services.", 409.0},
		`{"name":"` + uuid.Nil.String() + `"}`: {404, "Host '" + uuid.Nil.String() + "' not found! Nova has no hypervisor with this hostname, ID or compute service.", 404.0},
	} {
		s.expectError(body, want)
	}
	down = errors.New("Nova is down")
	s.expectError(`{"name":"cmp-4"}`,
		errorBody{503, "Nova cannot be asked about host cmp-4 now. Try again later.", 503.0})
}

// uuids returns the UUIDs of the resource providers by name.
func (s *service) uuids() map[string]string {
	s.Helper()
	all, err := s.store.Inventory.Providers(s.Context(), inventory.ProviderFilter{})
	if err != nil {
		s.Fatal(err)
	}
	uuids := map[string]string{}
	for _, p := range all {
		uuids[p.Name] = p.UUID
	}
	return uuids
}

// expectError registers a host and checks the error.
func (s *service) expectError(body string, want errorBody) {
	s.Helper()
	a := s.expect(want.Code, "POST", "/v1/os-hosts", body)
	if d := cmp.Diff(map[string]any{"error_code": float64(want.Code), "error_message": want.Message, "error_name": want.Name}, a.body); d != "" {
		s.Errorf("error of the registration %s (-want +got):\n%s", body, d)
	}
}
