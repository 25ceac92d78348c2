package blazar

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/identity"
	"berth/internal/lease"
)

func TestPlan_ShowsTheResourcesOfALease(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1", "cmp-2")
	body := `{"name":"gold","start_date":"2040-01-01 10:00","end_date":"2040-01-01 12:00","latest_start":null,
		"reservations":[{"resource_type":"physical:host","min":1,"max":2,"hypervisor_properties":"","resource_properties":""}]}`
	plan := func(start, end string, hosts ...any) map[string]any {
		return map[string]any{
			"plan": map[string]any{
				"name":       "gold",
				"start_date": start,
				"end_date":   end,
				"reservations": []any{
					map[string]any{
						"resource_type": "physical:host",
						"min":           1.0,
						"max":           2.0,
						"host_count":    float64(len(hosts)),
						"hosts":         hosts,
					}},
			},
		}
	}
	a := s.as("admin", "POST", "/v1/plans", body)
	if d := cmp.Diff(plan("2040-01-01T10:00:00.000000", "2040-01-01T12:00:00.000000", "cmp-1", "cmp-2"), a.body); a.status != 200 ||
		d != "" {
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

// A member sees no host in a lease, and could otherwise learn the names of all hosts from plans.
func TestPlan_NamesHostsOnlyToThoseWhoSeeHosts(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.largeHost("cmp-1")
	s.largeHost("cmp-2")
	const body = `{"name":"gold","start_date":"2040-01-01 10:00","end_date":"2040-01-01 12:00","reservations":[
		{"resource_type":"virtual:instance","amount":3,"vcpus":1,"memory_mb":1,"disk_gb":1,"affinity":true,"resource_properties":""},
		{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":"","resource_properties":""}]}`
	seesHosts := s.withPolicy(t, `"blazar:oshosts:get": "role:member"`)
	for _, c := range []struct {
		on    *service
		token string
		sees  bool
	}{{s, "alice:red", false}, {s, "admin", true}, {seesHosts, "alice:red", true}} {
		a := c.on.as(c.token, "POST", "/v1/plans", body)
		if sees := strings.Contains(a.raw, "cmp-"); a.status != 200 || sees != c.sees ||
			sees != strings.Contains(a.raw, `"hosts":`) || strings.Count(a.raw, `"host_count":1`) != 2 {
			t.Errorf("plan for %s: got %d %s; want two reservations on one host each, with hosts: %t",
				c.token, a.status, a.raw, c.sees)
		}
	}
}

func TestPlan_OneOfAProjectAtATime(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	began, proceed := make(chan struct{}, 1), make(chan struct{})
	flavor := func(_ context.Context, _, id string) (lease.Flavor, error) {
		began <- struct{}{}
		<-proceed
		return lease.Flavor{ID: id, Name: id, VCPUs: 1}, nil
	}
	s.serveAPI(&handler{Options: Options{Store: s.store.Lease, Identity: identity.Noauth{}, Flavor: flavor}})
	body := func(reservation string) string {
		return `{"name":"gold","start_date":"2040-01-01 10:00","end_date":"2040-01-01 12:00","reservations":[` + reservation + `]}`
	}
	slow := body(`{"resource_type":"flavor:instance","amount":1,"flavor_id":"small"}`)
	quick := body(
		`{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":"","resource_properties":""}`,
	)
	first := make(chan answer)
	go func() { first <- s.as("alice:red", "POST", "/v1/plans", slow) }()
	<-began

	a := s.as("bob:red", "POST", "/v1/plans", quick)

	if a.status != 429 || a.header.Get("Retry-After") != "1" || a.body["error_code"] != 429.0 ||
		a.body["error_message"] == "" {
		t.Errorf(
			"second plan of a project: got %d %s with Retry-After %q, want 429 in Blazar's format and Retry-After 1",
			a.status, a.raw, a.header.Get("Retry-After"),
		)
	}
	if a := s.as("eve:blue", "POST", "/v1/plans", quick); a.status != 200 {
		t.Errorf("plan of another project: got %d %s, want 200", a.status, a.raw)
	}
	close(proceed)
	if a := <-first; a.status != 200 {
		t.Errorf("first plan: got %d %s, want 200", a.status, a.raw)
	}
	if a := s.as("bob:red", "POST", "/v1/plans", quick); a.status != 200 {
		t.Errorf("plan after the first plan: got %d %s, want 200", a.status, a.raw)
	}
}
