package blazar

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func TestHost_Allocations(t *testing.T) {
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
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			if a := s.as("admin", c.method, c.path, c.body); a.status != c.status {
				t.Errorf("%s %s with the body %q: want status %d, got %d %s", c.method, c.path, c.body, c.status, a.status, a.raw)
			}
		})
	}
	properties := s.expect(200, "GET", "/v1/os-hosts/properties?detail=True&all=True", "").body["resource_properties"].([]any)
	if d := cmp.Diff(map[string]any{"property": "gpu", "private": true, "values": []any{"False"}}, properties[0]); d != "" || len(properties) != 3 {
		t.Errorf("list host properties with all=True: got %v, want 3 properties; the first property (-want +got):\n%s", properties, d)
	}
	if public := s.expect(200, "GET", "/v1/os-hosts/properties", "").body["resource_properties"].([]any); len(public) != 2 {
		t.Errorf("list the public host properties: got %v, want 2 properties", public)
	}
	s.expect(204, "DELETE", path, "")
	s.expect(404, "GET", path, "")
}
