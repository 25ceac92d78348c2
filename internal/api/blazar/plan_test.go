package blazar

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlan_ShowsTheResourcesOfALease(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1", "cmp-2")
	body := `{"name":"gold","start_date":"2040-01-01 10:00","end_date":"2040-01-01 12:00","latest_start":null,
		"reservations":[{"resource_type":"physical:host","min":1,"max":2,"hypervisor_properties":"","resource_properties":""}]}`
	plan := func(start, end string, hosts ...any) map[string]any {
		return map[string]any{"plan": map[string]any{"name": "gold", "start_date": start, "end_date": end, "reservations": []any{
			map[string]any{"resource_type": "physical:host", "min": 1.0, "max": 2.0, "hosts": hosts}}}}
	}
	a := s.as("alice:red", "POST", "/v1/plans", body)
	if d := cmp.Diff(plan("2040-01-01T10:00:00.000000", "2040-01-01T12:00:00.000000", "cmp-1", "cmp-2"), a.body); a.status != 200 || d != "" {
		t.Errorf("POST /v1/plans: got status %d, want 200; plan (-want +got):\n%s", a.status, d)
	}
	if all := s.expect(200, "GET", "/v1/leases", ""); len(all.body["leases"].([]any)) != 0 {
		t.Errorf("leases after a plan: got %s, want none", all.raw)
	}
	s.expect(201, "POST", "/v1/leases", strings.Replace(body, `"latest_start":null,`, "", 1))
	s.expect(409, "POST", "/v1/plans", body)
	a = s.expect(200, "POST", "/v1/plans", strings.Replace(body, "null", `"2040-01-02T00:00:00Z"`, 1))
	if d := cmp.Diff(plan("2040-01-01T12:00:00.000000", "2040-01-01T14:00:00.000000", "cmp-1", "cmp-2"), a.body); d != "" {
		t.Error(d)
	}
	s.expect(409, "POST", "/v1/plans", strings.Replace(body, "null", `"2040-01-01T11:59:59Z"`, 1))
	s.expect(400, "POST", "/v1/plans", strings.Replace(body, "null", `"tomorrow"`, 1))
	s.expect(400, "POST", "/v1/plans", strings.Replace(body, "null", `7`, 1))
	s.expect(400, "POST", "/v1/plans", `{"name":"gold"}`)
}
