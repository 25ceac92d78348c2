package neutron_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
	"berth/internal/store/networkstore"
)

func TestQuota_ShowSetAndReset(t *testing.T) {
	t.Parallel()
	c := openWith(t,
		networkstore.Config{Quota: network.Quota{network.QuotaNetworks: 100, network.QuotaPorts: 500}})
	show := func(c cloud, path string) object {
		t.Helper()
		return c.must(200, "GET", "/v2.0/quotas"+path, "")["quota"].(object)
	}
	defaults := object{
		"network":             100.0,
		"subnet":              -1.0,
		"port":                500.0,
		"security_group":      -1.0,
		"security_group_rule": -1.0,
		"trunk":               -1.0,
	}
	if d := cmp.Diff(defaults, show(c, "/demo")); d != "" {
		t.Error(d)
	}

	set := c.must(200, "PUT", "/v2.0/quotas/demo", `{"quota":{"network":2,"port":"7","tenant_id":"demo"}}`)["quota"].(object)

	own := object{
		"network":             2.0,
		"subnet":              -1.0,
		"port":                7.0,
		"security_group":      -1.0,
		"security_group_rule": -1.0,
		"trunk":               -1.0,
	}
	ann := c.as("ann:demo")
	for what, got := range map[string]object{"answered": set, "shown": show(c, "/demo"), "shown to its project": show(ann, "/demo.json")} {
		t.Run(what, func(t *testing.T) {
			if d := cmp.Diff(own, got); d != "" {
				t.Errorf("quota of the project, %s (-want +got):\n%s", what, d)
			}
		})
	}
	if d := cmp.Diff(defaults, show(ann, "/demo/default")); d != "" {
		t.Error(d)
	}
	c.as("ann:demo").createNetwork("10.0.0.0/24")
	if d := cmp.Diff(object{"limit": 2.0, "used": 1.0, "reserved": 0.0}, show(ann, "/demo/details.json")["network"]); d != "" {
		t.Error(d)
	}
	own["project_id"], own["tenant_id"] = "demo", "demo"
	if d := cmp.Diff([]any{own}, c.must(200, "GET", "/v2.0/quotas", "")["quotas"]); d != "" {
		t.Error(d)
	}
	for path, want := range map[string]string{
		"GET /v2.0/quotas":               "403",
		"GET /v2.0/quotas/other":         "403",
		"GET /v2.0/quotas/other/details": "403",
		"GET /v2.0/quotas/other/default": "403",
		"PUT /v2.0/quotas/demo":          "403",
		"DELETE /v2.0/quotas/demo":       "403",
	} {
		t.Run(path, func(t *testing.T) {
			var method, at string
			_, _ = fmt.Sscan(path, &method, &at)
			if got := ann.fault(method, at, `{"quota":{"port":1000}}`); got != want+" PolicyNotAuthorized" {
				t.Errorf("a member requests %s: got %s, want PolicyNotAuthorized", path, got)
			}
		})
	}
	for path, want := range map[string]object{"/v2.0/quotas/tenant": {"tenant": object{"tenant_id": "demo"}}, "/v2.0/quotas/project.json": {"project": object{"project_id": "demo"}}} {
		t.Run(path, func(t *testing.T) {
			if d := cmp.Diff(want, ann.must(200, "GET", path, "")); d != "" {
				t.Errorf("body of GET %s (-want +got):\n%s", path, d)
			}
		})
	}
	for _, body := range []string{`"port":5,"network":0`, `"network":0,"check_limit":true`, `"network":0,"force":false`} {
		if got := c.fault("PUT", "/v2.0/quotas/demo", `{"quota":{`+body+`}}`); got != "400 HTTPBadRequest" {
			t.Errorf("set a limit below the current usage with %s: got %s, want 400 HTTPBadRequest",
				body, got)
		}
	}
	for _, body := range []string{`"network":0,"check_limit":true,"force":true`, `"network":0,"force":true`, `"network":0,"check_limit":"False"`, `"network":-1,"port":0`} {
		t.Run(body, func(t *testing.T) {
			c := c.in(t)
			c.must(200, "PUT", "/v2.0/quotas/demo", `{"quota":{`+body+`}}`)
		})
	}
	for _, body := range []string{`{}`, `{"quota":[]}`, `{"quota":{"port":-2}}`, `{"quota":{"port":"many"}}`, `{"quota":{"moon":1}}`, `{"quota":{"port":3000000000}}`,
		`{"quota":{"tenant_id":"other","port":1}}`} {
		t.Run(body, func(t *testing.T) {
			c := c.in(t)
			if got := c.fault("PUT", "/v2.0/quotas/demo", body); got != "400 HTTPBadRequest" {
				t.Errorf("set the quota %s: got %s, want 400 HTTPBadRequest", body, got)
			}
		})
	}
	c.must(204, "DELETE", "/v2.0/quotas/demo", "")
	if got := c.fault("DELETE", "/v2.0/quotas/demo", ""); got != "404 TenantQuotaNotFound" {
		t.Errorf("delete a quota that does not exist: got %s, want 404", got)
	}
	if d := cmp.Diff(defaults, show(c, "/demo")); d != "" {
		t.Error(d)
	}
}

func TestQuota_CreateBeyondLimitIsRefused(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/16")
	group := c.group("g")
	c.must(
		200, "PUT", "/v2.0/quotas/admin",
		`{"quota":{"network":2,"subnet":1,"port":5,"trunk":0,"security_group":2,"security_group_rule":7}}`,
	)

	var created, refused atomic.Int32
	var requests sync.WaitGroup
	for range 64 { // more concurrent requests than the quota allows ports
		requests.Go(func() {
			switch status, o, _ := c.raw("POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q}}`, net)); status {
			case http.StatusCreated:
				created.Add(1)
			case http.StatusConflict:
				if o["NeutronError"].(object)["type"] == "OverQuota" {
					refused.Add(1)
				}
			}
		})
	}
	requests.Wait()
	if created.Load() != 5 || refused.Load() != 59 {
		t.Errorf(
			"64 concurrent creations with a limit of five ports: %d created and %d refused, want 5 and 59",
			created.Load(),
			refused.Load(),
		)
	}

	port := ids(c.must(200, "GET", "/v2.0/ports?limit=1", ""), "ports")[0]
	c.must(201, "POST", "/v2.0/networks", `{"network":{"name":"second"}}`)
	rule := func(more string) string {
		return fmt.Sprintf(
			`{"security_group_rules":[{"security_group_id":%[1]q,"direction":"ingress","protocol":"tcp"},{"security_group_id":%[1]q,"direction":"ingress","protocol":"udp"}%[2]s]}`,
			group,
			more,
		)
	}
	for path, body := range map[string]string{
		"/v2.0/networks":             `{"network":{}}`,
		"/v2.0/subnets":              fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":4,"cidr":"10.9.0.0/24"}}`, net),
		"/v2.0/trunks":               fmt.Sprintf(`{"trunk":{"port_id":%q}}`, port),
		"/v2.0/security-groups":      `{"security_group":{}}`,
		"/v2.0/security-group-rules": rule(""),
	} {
		t.Run(path, func(t *testing.T) {
			c := c.in(t)
			if got := c.fault("POST", path, body); got != "409 OverQuota" {
				t.Errorf("POST %s beyond the limit: got %s, want 409 OverQuota", path, got)
			}
		})
	}
	// The network of one project does not count against the limit of another project. A deleted port does not
	// count against the limit of its project.
	c.as("ann:demo").must(201, "POST", "/v2.0/networks", `{"network":{}}`)
	c.must(204, "DELETE", "/v2.0/ports/"+port, "")
	c.port(net, "")
	if got := c.fault("POST", "/v2.0/ports", fmt.Sprintf(`{"ports":[{"network_id":%[1]q,"project_id":"demo"},{"network_id":%[1]q}]}`, net)); got != "409 OverQuota" {
		t.Errorf(
			"create two ports in one request with one port left in the quota: got %s, want 409 OverQuota",
			got,
		)
	}
	if n := len(ids(c.must(200, "GET", "/v2.0/ports", ""), "ports")); n != 5 {
		t.Errorf("ports after a refused bulk creation: got %d, want 5", n)
	}
}
