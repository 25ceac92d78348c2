package placement_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/api/placement"
	"berth/internal/identity"
	"berth/internal/identity/keystonetest"
	"berth/internal/identity/policy"
	"berth/internal/store/storetest"
)

// routes returns the API's routes with values for the path parameters.
func routes(t *testing.T) []osapi.Route {
	t.Helper()
	all := patterns(t)
	for i := range all {
		all[i].Path = strings.NewReplacer("{uuid}", uuid.NewString(), "{consumer}", "nonsense", "{class}", "VCPU", "{name}", "nonsense").
			Replace(all[i].Path)
	}
	return all[1:] // without the root path
}

// patterns returns the API's routes as patterns: the paths of the routes contain parameters such as {uuid},
// as in the table of endpoints.
func patterns(t *testing.T) []osapi.Route {
	t.Helper()
	rules, err := policy.Open(policy.Options{}, placement.Policy...)
	if err != nil {
		t.Fatal(err)
	}
	store := storetest.New(t).Inventory
	return placement.New(placement.Options{Store: store, Identity: identity.Noauth{}, Policy: rules}).Routes
}

// refused returns the name of the policy rule that refused a request. If no policy rule refused the request,
// refused returns the empty string.
func refused(t *testing.T, a answer) string {
	t.Helper()
	if a.status != http.StatusForbidden {
		return ""
	}
	_, after, ok := strings.Cut(a.raw, "Policy does not allow placement:")
	name, _, closed := strings.Cut(after, " to be performed.")
	if !ok || !closed {
		t.Errorf("message of a refused request: want the name of the policy rule in it, got: %s", a.raw)
	}
	return name
}

func TestPolicy_CheckedBeforeEveryOperation(t *testing.T) {
	t.Parallel()
	c := serve(t)
	seen := map[string]bool{}
	for _, r := range routes(t) {
		body := "{" // malformed JSON: a refused caller gets 403, not 400
		if r.Method == http.MethodGet || r.Method == http.MethodDelete {
			body = ""
		}
		rule := refused(
			t,
			c.send("1.39", r.Method, r.Path, body, "X-Auth-Token", "ann:demo", "X-Roles", "member,reader"),
		)
		if rule == "" && !strings.HasPrefix(r.Path, "/usages") {
			t.Errorf("%s %s by a member: the request is not refused, want 403", r.Method, r.Path)
		}
		seen["placement:"+rule] = true
		for roles, may := range map[string]bool{
			"admin":     rule != "reshaper:reshape",
			"service":   true,
			"Service,x": true,
			"manager":   false,
		} {
			if got := refused(t, c.send("1.39", r.Method, r.Path, body, "X-Auth-Token", "nova:service", "X-Roles", roles)); (got == "") != may {
				t.Errorf(
					"%s %s with the role %s: got refused by the rule %q (empty if it is allowed), want the opposite",
					r.Method, r.Path, roles, got,
				)
			}
			if got := refused(t, c.send("1.39", r.Method, r.Path, body, "X-Auth-Token", "nova:service", "X-Roles", roles, "OpenStack-System-Scope", "all")); got == "" {
				t.Errorf("%s %s with the role %s and a system-scoped token: not refused, want 403",
					r.Method, r.Path, roles)
			}
		}
	}
	for _, d := range placement.Policy {
		if strings.HasPrefix(d.Name, "placement:") && d.Name != "placement:usages" && !seen[d.Name] {
			t.Errorf("policy rule %s: no route uses it, want at least one", d.Name)
		}
	}
}

func TestPolicy_CheckedAfterVersionAndHeaders(t *testing.T) {
	t.Parallel()
	c := serve(t)
	for _, tc := range []struct {
		status                      int
		version, method, path, body string
		headers                     []string
	}{
		{403, "1.39", "GET", "/resource_providers?unheard=1", "", nil},
		{403, "1.39", "PUT", "/resource_providers/x", "{}", nil},
		{404, "1.9", "GET", "/allocation_candidates_", "", nil},
		{404, "1.5", "GET", "/traits", "", nil},
		{405, "1.4", "DELETE", "/resource_providers/x/inventories", "", nil},
		{405, "1.39", "PATCH", "/resource_providers/x/inventories", "", nil},
		{406, "1.39", "GET", "/traits", "", []string{"Accept", "text/plain"}},
		{415, "1.39", "POST", "/resource_providers", "{}", []string{"Content-Type", "text/plain"}},
		{415, "1.0", "PUT", "/resource_providers/x/aggregates", "{}", []string{"Content-Type", "text/plain"}},
		{404, "1.0", "PUT", "/resource_providers/x/aggregates", "{}", nil},
		{404, "1.1", "POST", "/resource_classes", "{}", []string{"Content-Type", "text/plain"}},
		{404, "1.12", "POST", "/allocations", "{}", []string{"Content-Type", "text/plain"}},
		{400, "1.39", "POST", "/resource_providers", "{}", []string{"Content-Type", ""}},
		{406, "1.99", "POST", "/resource_providers", "{}", nil},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			c := c.in(t)
			c.want(tc.status, "", tc.version, tc.method, tc.path, tc.body,
				append(tc.headers, "X-Auth-Token", "ann:demo")...)
		})
	}
}

func TestNoauth_AsPlacementsNoauth2(t *testing.T) {
	t.Parallel()
	c := serve(t)
	for _, tc := range []struct {
		status  int
		path    string
		headers []string
	}{
		{200, "/traits", []string{"X-Auth-Token", "admin"}},
		{200, "/traits", []string{"X-Auth-Token", "admin:demo"}},
		{403, "/traits", []string{"X-Auth-Token", "ann"}},
		{403, "/traits", []string{"X-Auth-Token", "ann:demo"}},
		{403, "/traits", []string{"X-Auth-Token", "admin", "X-Roles", "member"}},
		{200, "/traits", []string{"X-Auth-Token", "ann", "X-Roles", "member, admin"}},
		{403, "/traits", []string{"X-Auth-Token", "admin", "OpenStack-System-Scope", "all"}},
		{200, "/traits", []string{"X-Auth-Token", "admin", "OpenStack-System-Scope", "project"}},
		{403, "/usages?project_id=demo", []string{"X-Auth-Token", "ann:demo"}},
		{200, "/usages?project_id=demo", []string{"X-Auth-Token", "ann:demo", "X-Roles", "reader"}},
		{403, "/usages?project_id=demo", []string{"X-Auth-Token", "ann:other", "X-Roles", "reader"}},
		{200, "/usages?project_id=demo", []string{"X-Auth-Token", "ann:other", "X-Roles", "reader", "X-Project-Id", "demo"}},
		{200, "/usages?project_id=ann", []string{"X-Auth-Token", "ann", "X-Roles", "reader"}},
		{403, "/usages?project_id=demo&project_id=other", []string{"X-Auth-Token", "ann:demo", "X-Roles", "reader"}},
		{200, "/usages?project_id=other&project_id=demo", []string{"X-Auth-Token", "ann:demo", "X-Roles", "reader"}},
		{403, "/usages", []string{"X-Auth-Token", "ann:demo", "X-Roles", "reader"}},
		{400, "/usages", []string{"X-Auth-Token", "admin"}},
		{401, "/usages", []string{"X-Auth-Token", ""}},
	} {
		t.Run(tc.path, func(t *testing.T) {
			c := c.in(t)
			c.want(tc.status, "", "1.39", "GET", tc.path, "", tc.headers...)
		})
	}
}

func TestPolicy_KeystoneRoleAndScope(t *testing.T) {
	t.Parallel()
	keystone := keystonetest.New(t)
	keystone.User("berth", "secret", "service", "service")
	k, err := identity.NewKeystone(identity.Service{
		AuthURL:       keystone.URL,
		Username:      "berth",
		Password:      "secret",
		Project:       "service",
		UserDomain:    "Default",
		ProjectDomain: "Default",
	})
	if err != nil {
		t.Fatal(err)
	}
	c := serveTo(t, k, policy.Options{})
	for _, tc := range []struct {
		token          keystonetest.Token
		traits, usages int
	}{
		{keystonetest.Token{Project: "demo", Roles: []string{"admin"}}, 200, 200},
		{keystonetest.Token{Project: "service", Roles: []string{"service"}}, 200, 200},
		{keystonetest.Token{Project: "demo", Roles: []string{"member", "reader"}}, 403, 200},
		{keystonetest.Token{Project: "demo", Roles: []string{"member"}}, 403, 403},
		{keystonetest.Token{Project: "other", Roles: []string{"reader"}}, 403, 403},
		{keystonetest.Token{System: true, Roles: []string{"admin", "service", "reader"}}, 403, 403},
		{keystonetest.Token{Domain: "d", Roles: []string{"admin", "service", "reader"}}, 403, 403},
		{keystonetest.Token{Project: "demo"}, 403, 403},
	} {
		tc.token.User = "u"
		id := keystone.Issue(tc.token)
		for _, forged := range [][]string{{}, {"X-Roles", "admin,service", "X-Project-Id", "demo", "X-User-Id", "admin"}} {
			headers := append(forged, "X-Auth-Token", id)
			c.want(tc.traits, "", "1.39", "GET", "/traits", "", headers...)
			c.want(tc.usages, "", "1.39", "GET", "/usages?project_id=demo", "", headers...)
		}
	}
	c.want(401, "Unauthorized", "1.39", "GET", "/traits", "", "X-Auth-Token", "admin")
	c.want(200, "versions", "1.39", "GET", "/", "", "X-Auth-Token", "")
}

func TestPolicy_OldDefaultsAdmitAdministrators(t *testing.T) {
	t.Parallel()
	c := serveTo(t, identity.Noauth{}, policy.Options{Old: true})
	for _, r := range routes(t) {
		for headers, may := range map[[2]string]bool{{"admin", ""}: true, {"member", ""}: false, {"admin", "all"}: false} {
			a := c.send("1.39", r.Method, r.Path, "{", "X-Auth-Token", "u:p", "X-Roles", headers[0],
				"OpenStack-System-Scope", headers[1])
			if (refused(t, a) == "") != may {
				t.Errorf("%s %s with roles and scope %q: got status %d, want the opposite verdict",
					r.Method, r.Path, headers, a.status)
			}
		}
	}
}

func TestPolicy_OperatorsRulesReplaceDefaults(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(`
"placement:traits:list": "@"
"placement:resource_classes:list": "role:auditor and project_id:%(project_id)s"
"placement:resource_providers:create": "!"
"placement:usages": "rule:owners or role:admin"
"owners": "user_id:%(user_id)s and project_id:%(project_id)s"
`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := serveTo(t, identity.Noauth{}, policy.Options{File: path})

	c.want(200, "", "1.39", "GET", "/traits", "", "X-Auth-Token", "ann:demo")
	c.want(403, "", "1.39", "GET", "/traits", "", "X-Auth-Token", "ann:demo", "OpenStack-System-Scope", "all")
	c.want(200, "", "1.39", "GET", "/resource_classes", "", "X-Auth-Token", "ann:demo", "X-Roles", "Auditor")
	c.want(403, "placement:resource_classes:list",
		"1.39", "GET", "/resource_classes", "", "X-Auth-Token", "admin")
	c.want(403, "placement:resource_providers:create", "1.39", "POST", "/resource_providers", `{"name":"x"}`)
	c.want(200, "", "1.39", "GET", "/resource_providers", "")
	c.want(200, "", "1.39", "GET", "/usages?project_id=demo", "", "X-Auth-Token", "ann:demo")
	c.want(403, "placement:usages", "1.39", "GET", "/usages?project_id=demo", "", "X-Auth-Token", "ann:other")
}
