package blazar

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/identity/policy"
)

func init() { pageItems = 2 } // so that the lists of the tests need several pages

// withPolicy starts another API server on the same database, whose rules are the defaults and those of the
// given file.
func (s *service) withPolicy(t *testing.T, file string) *service {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := policy.Open(policy.Options{File: path}, Policy...)
	if err != nil {
		t.Fatal(err)
	}
	other := *s
	other.T, other.policy = t, rules
	other.serve(2 * time.Minute)
	return &other
}

func TestPolicy_EachRuleDecidesItsRoutes(t *testing.T) {
	t.Parallel()
	s := newService(t, "one")
	l := s.lease("ann:demo", "own", 1, 2)["id"].(string)
	for _, rule := range Policy {
		for _, route := range rule.Guards {
			t.Run(rule.Name+" "+route, func(t *testing.T) {
				method, path, _ := strings.Cut(route, " ")
				id := uuid.NewString()
				if strings.HasPrefix(path, "/v1/leases") && method != "DELETE" {
					id = l
				}
				path, body := strings.ReplaceAll(path, "{id}", id), ""
				if method != "GET" && method != "DELETE" {
					body = "{}"
				}
				send := func(file, roles string) answer {
					return s.withPolicy(t, file).as("ann:demo", method, path, body, "X-Roles: "+roles)
				}
				if a := send(`"`+rule.Name+`": "!"`, "admin,member"); a.status != 403 ||
					!strings.Contains(a.raw, rule.Name) {
					t.Errorf(
						"%s with a rule that allows nothing: got %d %s, want 403 with the rule's name",
						route, a.status, a.raw,
					)
				}
				a := send(`"`+rule.Name+`": "role:auditor"`, "auditor")
				if strings.Contains(a.raw, "Policy doesn't allow") {
					t.Errorf("%s with a rule that allows the role: got %s, want another answer", route, a.raw)
				}
				if a := send(`"`+rule.Name+`": "role:auditor"`, "admin,member"); a.status != 403 {
					t.Errorf("%s with a rule for another role: got %d %s, want 403", route, a.status, a.raw)
				}
			})
		}
	}
}

func TestPolicy_DefaultOfEachRouteByRole(t *testing.T) {
	t.Parallel()
	s := newService(t)
	lease := s.withPolicy(t, "")
	for _, rule := range Policy {
		for _, route := range rule.Guards {
			method, path, _ := strings.Cut(route, " ")
			onLeases := strings.HasPrefix(rule.Name, "blazar:leases:")
			reads := rule.Name == "blazar:leases:get" || rule.Name == "blazar:floatingips:get"
			for roles, allowed := range map[string]bool{
				"admin":   true,
				"service": false,
				"reader":  reads,
				"member":  onLeases || reads,
				"auditor": false,
			} {
				body := ""
				if method != "GET" && method != "DELETE" {
					body = "{"
				}
				a := lease.as("ann:demo", method,
					strings.ReplaceAll(path, "{id}", uuid.NewString()), body, "X-Roles: "+roles)
				if refused := a.status == 403 && strings.Contains(a.raw, "Policy doesn't allow "+rule.Name+" to be performed."); refused == allowed {
					t.Errorf("%s with the role %s: got %d %s, want allowed=%v",
						route, roles, a.status, a.raw, allowed)
				}
			}
		}
	}
}

// names lists the names of the leases that the caller gets, page by page if the size of the pages is not 0.
func (s *service) names(token, roles string, size int) (names []string) {
	s.Helper()
	marker := ""
	for range 20 {
		path := "/v1/leases"
		if size > 0 {
			path += "?limit=" + strconv.Itoa(size) + marker
		}
		a := s.as(token, "GET", path, "", "X-Roles: "+roles)
		if a.status != 200 {
			s.Fatalf("list the leases: got %d %s, want 200", a.status, a.raw)
		}
		leases := a.body["leases"].([]any)
		for _, l := range leases {
			names = append(names, l.(map[string]any)["name"].(string))
			marker = "&marker=" + l.(map[string]any)["id"].(string)
		}
		if size == 0 || len(leases) < size {
			break
		}
	}
	return names
}

func TestPolicy_ListHasTheLeasesThatTheRuleAllows(t *testing.T) {
	t.Parallel()
	s := newService(t, "one")
	for i, token := range []string{"ann:demo", "bob:demo", "ann:demo", "eve:other", "ann:other", "ann:demo"} {
		s.lease(token, token+strconv.Itoa(i), 2*i+1, 2*i+2)
	}
	demo, other := []string{
		"ann:demo0",
		"bob:demo1",
		"ann:demo2",
		"ann:demo5",
	}, []string{
		"eve:other3",
		"ann:other4",
	}
	all := []string{"ann:demo0", "bob:demo1", "ann:demo2", "eve:other3", "ann:other4", "ann:demo5"}
	for _, c := range []struct {
		rule, token, roles string
		want               []string
	}{
		{"", "ann:demo", "member", demo},
		{"", "eve:other", "reader", other},
		{"", "root", "admin", all},
		{"role:auditor or rule:project_reader_or_admin", "eve:other", "auditor", all},
		{"role:auditor or rule:project_reader_or_admin", "eve:other", "member", other},
		{"user_id:%(user_id)s", "ann:demo", "member", []string{"ann:demo0", "ann:demo2", "ann:other4", "ann:demo5"}},
		{"user_id:%(user_id)s and project_id:%(project_id)s", "ann:demo", "member", []string{"ann:demo0", "ann:demo2", "ann:demo5"}},
		{"not project_id:%(project_id)s", "ann:demo", "member", other},
	} {
		t.Run(c.rule+" "+c.token, func(t *testing.T) {
			file := ""
			if c.rule != "" {
				file = `"blazar:leases:get": "` + c.rule + `"`
			}
			v := s.withPolicy(t, file)
			for _, size := range []int{0, 1, 2} {
				if d := cmp.Diff(c.want, v.names(c.token, c.roles, size)); d != "" {
					t.Errorf("list the leases with pages of %d: (-want +got)\n%s", size, d)
				}
			}
		})
	}
}

func TestPolicy_DecidesForEachLease(t *testing.T) {
	t.Parallel()
	s := newService(t, "one")
	own, others := s.lease("ann:demo", "own", 1, 2)["id"].(string), s.lease("bob:demo", "other", 3, 4)["id"].(string)
	v := s.withPolicy(t, `
"blazar:leases:get": "user_id:%(user_id)s"
"blazar:leases:put": "user_id:%(user_id)s"
"blazar:leases:delete": "user_id:%(user_id)s"
`)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v1/leases/", ""}, {"PUT", "/v1/leases/", `{"name":"new"}`}, {"DELETE", "/v1/leases/", ""},
	} {
		if a := v.as("ann:demo", c.method, c.path+others, c.body); a.status != 403 {
			t.Errorf("%s the lease of another user: got %d %s, want 403", c.method, a.status, a.raw)
		}
		if a := v.as("ann:demo", c.method, c.path+own, c.body); a.status == 403 {
			t.Errorf("%s the own lease: got 403 %s, want another status", c.method, a.raw)
		}
	}
	if a := v.as("ann:demo", "GET", "/v1/leases?marker="+others, ""); a.status != 400 {
		t.Errorf("list from the lease of another user: got %d %s, want 400", a.status, a.raw)
	}
}
