package torture

import (
	"net/http"
	"strings"
	"testing"

	"berth/internal/api/osapi"
)

// The callers whose rights are told apart. All but the first have a valid token.
var callers = []struct {
	name, token, roles string
}{
	{"nobody", "-", ""},
	{"stranger", "eve:other", ""},     // member of another project
	{"loner", "eve:demo", "unheard"},  // no role that counts, in the object's project
	{"reader", "rita:demo", "reader"}, // in the object's project
	{"member", "ann:demo", ""},        // of the object's project
	{"service", "nova:service", "service"},
	{"admin", "admin", ""},
}

// rights are what each of the callers gets, in their order; 0 is anything but a denial.
type rights [7]int

var (
	open_    = rights{0, 0, 0, 0, 0, 0, 0}
	admins   = rights{401, 403, 403, 403, 403, 0, 0}
	services = rights{401, 403, 403, 403, 403, 0, 403}
	reading  = rights{401, 0, 403, 0, 0, 0, 0}     // a list, which shows everyone their own
	making   = rights{401, 0, 403, 403, 0, 0, 0}   // something of one's own
	seeing   = rights{401, 404, 403, 0, 0, 0, 0}   // an object of the project; others cannot tell that it is there
	turning  = rights{401, 404, 403, 403, 0, 0, 0} // the same, to change it
	looking  = rights{401, 403, 403, 0, 0, 0, 0}   // a lease, of which others may know
	ruling   = rights{401, 403, 403, 403, 0, 0, 0}
)

// permissions are who may do what, for every route. Placement, the agents' gateway, the journal and operators are for
// administrators and services on all of theirs.
var permissions = map[string]rights{
	"/placement": admins, "/agent/v1": admins, "/journal/v1": admins, "/operator/v1": admins,
	"GET /placement/": open_, "POST /placement/reshaper": services,

	"GET /networking/": open_, "GET /networking/v2.0": open_, "GET /networking/v2.0/": open_,
	"GET /networking/v2.0/extensions": reading, "GET /networking/v2.0/extensions/{alias}": reading,
	"GET /networking/v2.0/security-groups": reading, "POST /networking/v2.0/security-groups": making, "GET /networking/v2.0/security-groups/{id}": seeing,
	"PUT /networking/v2.0/security-groups/{id}": turning, "DELETE /networking/v2.0/security-groups/{id}": turning,
	"GET /networking/v2.0/security-groups/{id}/tags": seeing, "PUT /networking/v2.0/security-groups/{id}/tags": turning, "POST /networking/v2.0/security-groups/{id}/tags": turning, "DELETE /networking/v2.0/security-groups/{id}/tags": turning,
	"GET /networking/v2.0/security-groups/{id}/tags/{tag}": seeing, "PUT /networking/v2.0/security-groups/{id}/tags/{tag}": turning, "DELETE /networking/v2.0/security-groups/{id}/tags/{tag}": turning,
	"GET /networking/v2.0/security-group-rules": reading, "POST /networking/v2.0/security-group-rules": turning, "GET /networking/v2.0/security-group-rules/{id}": seeing,
	"PUT /networking/v2.0/security-group-rules/{id}": turning, "DELETE /networking/v2.0/security-group-rules/{id}": turning,
	"GET /networking/v2.0/quotas/tenant": reading, "GET /networking/v2.0/quotas/project": reading,
	"GET /networking/v2.0/quotas": admins, "GET /networking/v2.0/quotas/{project}": looking, "PUT /networking/v2.0/quotas/{project}": admins,
	"DELETE /networking/v2.0/quotas/{project}": admins, "GET /networking/v2.0/quotas/{project}/default": looking, "GET /networking/v2.0/quotas/{project}/details": looking,
	"GET /networking/v2.0/network-ip-availabilities": reading, "GET /networking/v2.0/network-ip-availabilities/{id}": seeing, "GET /networking/v2.0/availability_zones": reading,
	"GET /networking/v2.0/networks": reading, "POST /networking/v2.0/networks": making, "GET /networking/v2.0/networks/{id}": seeing,
	"PUT /networking/v2.0/networks/{id}": turning, "DELETE /networking/v2.0/networks/{id}": turning,
	"GET /networking/v2.0/subnets": reading, "POST /networking/v2.0/subnets": turning, "GET /networking/v2.0/subnets/{id}": seeing,
	"PUT /networking/v2.0/subnets/{id}": turning, "DELETE /networking/v2.0/subnets/{id}": turning,
	"GET /networking/v2.0/ports": reading, "POST /networking/v2.0/ports": turning, "GET /networking/v2.0/ports/{id}": seeing,
	"PUT /networking/v2.0/ports/{id}": turning, "DELETE /networking/v2.0/ports/{id}": turning,
	"GET /networking/v2.0/ports/{id}/bindings": admins, "POST /networking/v2.0/ports/{id}/bindings": admins,
	"GET /networking/v2.0/ports/{id}/bindings/{host}": admins, "PUT /networking/v2.0/ports/{id}/bindings/{host}": admins,
	"DELETE /networking/v2.0/ports/{id}/bindings/{host}": admins, "PUT /networking/v2.0/ports/{id}/bindings/{host}/activate": admins,
	"GET /networking/v2.0/trunks": reading, "POST /networking/v2.0/trunks": turning, "GET /networking/v2.0/trunks/{id}": seeing,
	"PUT /networking/v2.0/trunks/{id}": turning, "DELETE /networking/v2.0/trunks/{id}": turning, "GET /networking/v2.0/trunks/{id}/get_subports": seeing,
	"PUT /networking/v2.0/trunks/{id}/add_subports": turning, "PUT /networking/v2.0/trunks/{id}/remove_subports": turning,
	"GET /networking/v2.0/networks/{id}/tags": seeing, "PUT /networking/v2.0/networks/{id}/tags": turning, "POST /networking/v2.0/networks/{id}/tags": turning, "DELETE /networking/v2.0/networks/{id}/tags": turning,
	"GET /networking/v2.0/networks/{id}/tags/{tag}": seeing, "PUT /networking/v2.0/networks/{id}/tags/{tag}": turning, "DELETE /networking/v2.0/networks/{id}/tags/{tag}": turning,
	"GET /networking/v2.0/subnets/{id}/tags": seeing, "PUT /networking/v2.0/subnets/{id}/tags": turning, "POST /networking/v2.0/subnets/{id}/tags": turning, "DELETE /networking/v2.0/subnets/{id}/tags": turning,
	"GET /networking/v2.0/subnets/{id}/tags/{tag}": seeing, "PUT /networking/v2.0/subnets/{id}/tags/{tag}": turning, "DELETE /networking/v2.0/subnets/{id}/tags/{tag}": turning,
	"GET /networking/v2.0/ports/{id}/tags": seeing, "PUT /networking/v2.0/ports/{id}/tags": turning, "POST /networking/v2.0/ports/{id}/tags": turning, "DELETE /networking/v2.0/ports/{id}/tags": turning,
	"GET /networking/v2.0/ports/{id}/tags/{tag}": seeing, "PUT /networking/v2.0/ports/{id}/tags/{tag}": turning, "DELETE /networking/v2.0/ports/{id}/tags/{tag}": turning,
	"GET /networking/v2.0/trunks/{id}/tags": seeing, "PUT /networking/v2.0/trunks/{id}/tags": turning, "POST /networking/v2.0/trunks/{id}/tags": turning, "DELETE /networking/v2.0/trunks/{id}/tags": turning,
	"GET /networking/v2.0/trunks/{id}/tags/{tag}": seeing, "PUT /networking/v2.0/trunks/{id}/tags/{tag}": turning, "DELETE /networking/v2.0/trunks/{id}/tags/{tag}": turning,
	"GET /networking/v2.0/agents": admins, "GET /networking/v2.0/agents/{id}": admins, "PUT /networking/v2.0/agents/{id}": admins,
	"DELETE /networking/v2.0/agents/{id}": admins, "GET /networking/v2.0/agents/{id}/dhcp-networks": admins,
	"POST /networking/v2.0/agents/{id}/dhcp-networks": admins, "DELETE /networking/v2.0/agents/{id}/dhcp-networks/{network}": admins,
	"GET /networking/v2.0/networks/{id}/dhcp-agents": admins,

	"GET /reservation/": open_, "GET /reservation/versions": open_,
	"GET /reservation/v1/leases": reading, "POST /reservation/v1/leases": making, "POST /reservation/v1/plans": making, "GET /reservation/v1/leases/{id}": looking,
	"PUT /reservation/v1/leases/{id}": ruling, "DELETE /reservation/v1/leases/{id}": ruling,
	"GET /reservation/v1/os-hosts": admins, "POST /reservation/v1/os-hosts": admins, "GET /reservation/v1/os-hosts/allocations": admins,
	"GET /reservation/v1/os-hosts/properties": admins, "PATCH /reservation/v1/os-hosts/properties/{id}": admins, "GET /reservation/v1/os-hosts/{id}": admins,
	"PUT /reservation/v1/os-hosts/{id}": admins, "DELETE /reservation/v1/os-hosts/{id}": admins, "GET /reservation/v1/os-hosts/{id}/allocation": admins,
	"GET /reservation/v1/floatingips": reading, "POST /reservation/v1/floatingips": admins, "GET /reservation/v1/floatingips/{id}": reading,
	"DELETE /reservation/v1/floatingips/{id}": admins,
}

// harmless bodies are such that a member may send them: none sets what is for administrators.
var harmless = map[string]string{
	"POST /reservation/v1/os-hosts":                    `{"name":7}`,
	"POST /networking/v2.0/networks":                   `{"network":{"name":"mine"}}`,
	"PUT /networking/v2.0/networks/{id}":               `{"network":{"name":"mine"}}`,
	"POST /networking/v2.0/subnets":                    `{"subnet":{"network_id":"{network}","ip_version":4,"cidr":"10.8.0.0/24"}}`,
	"POST /networking/v2.0/ports":                      `{"port":{"network_id":"{network}"}}`,
	"PUT /networking/v2.0/ports/{id}":                  `{"port":{"name":"mine"}}`,
	"POST /networking/v2.0/security-groups":            `{"security_group":{"name":"mine"}}`,
	"PUT /networking/v2.0/security-group-rules/{id}":   `{"security_group_rule":{"description":"mine"}}`,
	"PUT /networking/v2.0/trunks/{id}":                 `{"trunk":{"name":"mine"}}`,
	"PUT /networking/v2.0/trunks/{id}/add_subports":    `{"sub_ports":[]}`,
	"PUT /networking/v2.0/trunks/{id}/remove_subports": `{"sub_ports":[]}`,
	"PUT /reservation/v1/leases/{id}":                  `{"name":"mine"}`,
}

func TestPolicy_EveryRouteForEveryCaller(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	seen := map[string]bool{}
	try := func(api *osapi.API, r osapi.Route) {
		name := r.Method + " " + api.Prefix + strings.TrimSuffix(r.Path, ".json")
		allowed, ok := permissions[name]
		if !ok {
			allowed, ok = permissions[api.Prefix]
		}
		if !ok {
			t.Errorf("%s is not in the table: say who may", name)
			return
		}
		seen[name], seen[api.Prefix] = true, true
		body, ok := harmless[name]
		if !ok {
			body = bodies[name]
		}
		for i, c := range callers {
			a := attack{method: r.Method, path: h.real(api.Prefix + r.Path), body: h.fill(body), token: c.token, header: http.Header{}}
			if c.roles != "" {
				a.header.Set("X-Roles", c.roles)
			}
			if r.Method == http.MethodDelete && i > 0 && allowed[i] == 0 && allowed[i-1] == 0 {
				return // the first who may has done it
			}
			got := h.suffer(a)
			denied := got == 401 || got == 403 || got == 404 && !strings.Contains(name, "{network}") && !strings.Contains(name, "{tag}")
			if allowed[i] != 0 && got != allowed[i] || allowed[i] == 0 && denied && !(name == "GET /placement/" && got == 404) {
				t.Errorf("%s by %s: %d, want %d", name, c.name, got, allowed[i])
			}
		}
	}
	var last []func()
	everyRoute(h, func(api *osapi.API, r osapi.Route) {
		if r.Method == http.MethodDelete {
			last = append(last, func() { try(api, r) })
			return
		}
		try(api, r)
	})
	for i := range last { // ports before their networks
		last[len(last)-1-i]()
	}
	for name := range permissions {
		if !seen[name] {
			t.Errorf("%s is in the table and no route", name)
		}
	}
}

func TestPolicy_UsagesForReadersOfProject(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	for token, want := range map[string]int{"rita:demo": 200, "eve:other": 403} {
		if got := h.suffer(attack{method: http.MethodGet, path: "/placement/usages?project_id=demo", token: token, header: http.Header{"X-Roles": {"reader"}}}); got != want {
			t.Errorf("%s: %d, want %d", token, got, want)
		}
	}
}
