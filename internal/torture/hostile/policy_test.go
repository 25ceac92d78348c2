package hostile

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"berth/internal/api/osapi"
)

// callers are the kinds of callers that berth's access policy distinguishes. All callers in the list
// `callers` except the first caller have a valid token.
var callers = []struct {
	name, token, roles string
}{
	{"no token", "-", ""},
	{"stranger", "eve:other", ""},     // member of another project
	{"loner", "eve:demo", "unheard"},  // without a known role, in the object's project
	{"reader", "rita:demo", "reader"}, // in the object's project
	{"member", "ann:demo", ""},        // of the object's project
	{"service", "nova:service", "service"},
	{"admin", "admin", ""},
}

// expectedStatuses has the HTTP status that each caller must get, in the order of the list `callers`. The
// value 0 means that the caller may get every status except a denial (401, 403, and for most routes 404).
type expectedStatuses [7]int

var (
	anyone        = expectedStatuses{0, 0, 0, 0, 0, 0, 0}
	adminOnly     = expectedStatuses{401, 403, 403, 403, 403, 0, 0}
	roleAdminOnly = expectedStatuses{401, 403, 403, 403, 403, 403, 0}
	serviceOnly   = expectedStatuses{401, 403, 403, 403, 403, 0, 403}
	// list that contains the caller's own objects
	listOwn = expectedStatuses{
		401,
		0,
		403,
		0,
		0,
		0,
		0,
	}
	// create an object in the caller's project
	createOwn = expectedStatuses{
		401,
		0,
		403,
		403,
		0,
		0,
		0,
	}
	// read an object of a project; other projects get 404
	readProjectObject = expectedStatuses{
		401,
		404,
		403,
		0,
		0,
		0,
		0,
	}
	writeProjectObject = expectedStatuses{401, 404, 403, 403, 0, 0, 0} // change an object of a project
	// read an object of the caller's project; services get 404, too
	readOwnObject = expectedStatuses{
		401,
		404,
		403,
		0,
		0,
		404,
		0,
	}
	// read an object whose existence is no secret
	readVisibleObject = expectedStatuses{
		401,
		403,
		403,
		0,
		0,
		0,
		0,
	}
	writeVisibleObject = expectedStatuses{401, 403, 403, 403, 0, 0, 0}
	// read an object that only administrators and services may see
	readHiddenObject = expectedStatuses{
		401,
		404,
		403,
		404,
		404,
		0,
		0,
	}
	writeHiddenObject = expectedStatuses{401, 404, 403, 403, 404, 0, 0}
)

// withoutService returns the same statuses, but the role service alone is denied.
func withoutService(e expectedStatuses) expectedStatuses {
	e[5] = 403
	return e
}

// permissions maps every route to its expected statuses. An entry of `permissions` whose key is the prefix of
// an API applies to all routes of this API that have no entry of their own.
var permissions = map[string]expectedStatuses{
	"/placement":                                                  adminOnly,
	"/agent/v1":                                                   adminOnly,
	"/journal/v1":                                                 roleAdminOnly,
	"/operator/v1":                                                roleAdminOnly,
	"/console":                                                    roleAdminOnly,
	"GET /journal/v1/entries":                                     adminOnly,
	"POST /journal/v1/entries":                                    adminOnly,
	"GET /journal/v1/entries/{seq}":                               adminOnly,
	"GET /console/static/{file}":                                  anyone,
	"GET /console/":                                               listOwn,
	"GET /console/find":                                           listOwn,
	"GET /console/ports":                                          listOwn,
	"GET /console/ports/{id}":                                     readOwnObject,
	"GET /console/trunks/{id}":                                    readOwnObject,
	"GET /console/leases":                                         withoutService(listOwn),
	"GET /console/leases/{id}":                                    withoutService(readProjectObject),
	"GET /console/login":                                          anyone,
	"POST /console/login":                                         anyone,
	"POST /console/logout":                                        anyone,
	"GET /operator/v1/agent-tokens":                               roleAdminOnly,
	"POST /operator/v1/agent-tokens":                              roleAdminOnly,
	"DELETE /operator/v1/agent-tokens/{id}":                       roleAdminOnly,
	"GET /operator/v1/agent-keys":                                 roleAdminOnly,
	"POST /operator/v1/agent-keys":                                roleAdminOnly,
	"DELETE /operator/v1/agent-keys/{id}":                         roleAdminOnly,
	"GET /operator/v1/agent-vhosts":                               roleAdminOnly,
	"POST /operator/v1/agent-vhosts":                              roleAdminOnly,
	"DELETE /operator/v1/agent-vhosts/{id}":                       roleAdminOnly,
	"GET /placement/":                                             anyone,
	"POST /placement/reshaper":                                    serviceOnly,
	"GET /networking/":                                            anyone,
	"GET /networking/v2.0":                                        anyone,
	"GET /networking/v2.0/":                                       anyone,
	"GET /networking/v2.0/extensions":                             listOwn,
	"GET /networking/v2.0/extensions/{alias}":                     listOwn,
	"GET /networking/v2.0/security-groups":                        listOwn,
	"POST /networking/v2.0/security-groups":                       withoutService(createOwn),
	"GET /networking/v2.0/security-groups/{id}":                   readProjectObject,
	"PUT /networking/v2.0/security-groups/{id}":                   withoutService(writeProjectObject),
	"DELETE /networking/v2.0/security-groups/{id}":                withoutService(writeProjectObject),
	"GET /networking/v2.0/security-groups/{id}/tags":              readProjectObject,
	"PUT /networking/v2.0/security-groups/{id}/tags":              withoutService(writeProjectObject),
	"POST /networking/v2.0/security-groups/{id}/tags":             withoutService(writeProjectObject),
	"DELETE /networking/v2.0/security-groups/{id}/tags":           withoutService(writeProjectObject),
	"GET /networking/v2.0/security-groups/{id}/tags/{tag}":        readProjectObject,
	"PUT /networking/v2.0/security-groups/{id}/tags/{tag}":        withoutService(writeProjectObject),
	"DELETE /networking/v2.0/security-groups/{id}/tags/{tag}":     withoutService(writeProjectObject),
	"GET /networking/v2.0/security-group-rules":                   listOwn,
	"POST /networking/v2.0/security-group-rules":                  withoutService(writeProjectObject),
	"GET /networking/v2.0/security-group-rules/{id}":              readProjectObject,
	"PUT /networking/v2.0/security-group-rules/{id}":              withoutService(writeProjectObject),
	"DELETE /networking/v2.0/security-group-rules/{id}":           withoutService(writeProjectObject),
	"GET /networking/v2.0/quotas/tenant":                          listOwn,
	"GET /networking/v2.0/quotas/project":                         listOwn,
	"GET /networking/v2.0/quotas":                                 adminOnly,
	"GET /networking/v2.0/quotas/{project}":                       readVisibleObject,
	"PUT /networking/v2.0/quotas/{project}":                       roleAdminOnly,
	"DELETE /networking/v2.0/quotas/{project}":                    roleAdminOnly,
	"GET /networking/v2.0/quotas/{project}/default":               readVisibleObject,
	"GET /networking/v2.0/quotas/{project}/details":               readVisibleObject,
	"GET /networking/v2.0/network-ip-availabilities":              withoutService(listOwn),
	"GET /networking/v2.0/network-ip-availabilities/{id}":         withoutService(readHiddenObject),
	"GET /networking/v2.0/availability_zones":                     listOwn,
	"GET /networking/v2.0/networks":                               listOwn,
	"POST /networking/v2.0/networks":                              withoutService(createOwn),
	"GET /networking/v2.0/networks/{id}":                          readProjectObject,
	"PUT /networking/v2.0/networks/{id}":                          withoutService(writeProjectObject),
	"DELETE /networking/v2.0/networks/{id}":                       withoutService(writeProjectObject),
	"GET /networking/v2.0/subnets":                                listOwn,
	"POST /networking/v2.0/subnets":                               withoutService(writeProjectObject),
	"GET /networking/v2.0/subnets/{id}":                           readProjectObject,
	"PUT /networking/v2.0/subnets/{id}":                           withoutService(writeProjectObject),
	"DELETE /networking/v2.0/subnets/{id}":                        withoutService(writeProjectObject),
	"GET /networking/v2.0/ports":                                  listOwn,
	"POST /networking/v2.0/ports":                                 writeProjectObject,
	"GET /networking/v2.0/ports/{id}":                             readProjectObject,
	"PUT /networking/v2.0/ports/{id}":                             writeProjectObject,
	"DELETE /networking/v2.0/ports/{id}":                          writeProjectObject,
	"GET /networking/v2.0/ports/{id}/bindings":                    readProjectObject,
	"POST /networking/v2.0/ports/{id}/bindings":                   adminOnly,
	"GET /networking/v2.0/ports/{id}/bindings/{host}":             adminOnly,
	"PUT /networking/v2.0/ports/{id}/bindings/{host}":             adminOnly,
	"DELETE /networking/v2.0/ports/{id}/bindings/{host}":          adminOnly,
	"PUT /networking/v2.0/ports/{id}/bindings/{host}/activate":    adminOnly,
	"GET /networking/v2.0/trunks":                                 listOwn,
	"POST /networking/v2.0/trunks":                                withoutService(writeProjectObject),
	"GET /networking/v2.0/trunks/{id}":                            readProjectObject,
	"PUT /networking/v2.0/trunks/{id}":                            withoutService(writeProjectObject),
	"DELETE /networking/v2.0/trunks/{id}":                         withoutService(writeProjectObject),
	"GET /networking/v2.0/trunks/{id}/get_subports":               readProjectObject,
	"PUT /networking/v2.0/trunks/{id}/add_subports":               withoutService(writeProjectObject),
	"PUT /networking/v2.0/trunks/{id}/remove_subports":            withoutService(writeProjectObject),
	"GET /networking/v2.0/networks/{id}/tags":                     readProjectObject,
	"PUT /networking/v2.0/networks/{id}/tags":                     withoutService(writeProjectObject),
	"POST /networking/v2.0/networks/{id}/tags":                    withoutService(writeProjectObject),
	"DELETE /networking/v2.0/networks/{id}/tags":                  withoutService(writeProjectObject),
	"GET /networking/v2.0/networks/{id}/tags/{tag}":               readProjectObject,
	"PUT /networking/v2.0/networks/{id}/tags/{tag}":               withoutService(writeProjectObject),
	"DELETE /networking/v2.0/networks/{id}/tags/{tag}":            withoutService(writeProjectObject),
	"GET /networking/v2.0/subnets/{id}/tags":                      readProjectObject,
	"PUT /networking/v2.0/subnets/{id}/tags":                      withoutService(writeProjectObject),
	"POST /networking/v2.0/subnets/{id}/tags":                     withoutService(writeProjectObject),
	"DELETE /networking/v2.0/subnets/{id}/tags":                   withoutService(writeProjectObject),
	"GET /networking/v2.0/subnets/{id}/tags/{tag}":                readProjectObject,
	"PUT /networking/v2.0/subnets/{id}/tags/{tag}":                withoutService(writeProjectObject),
	"DELETE /networking/v2.0/subnets/{id}/tags/{tag}":             withoutService(writeProjectObject),
	"GET /networking/v2.0/ports/{id}/tags":                        readProjectObject,
	"PUT /networking/v2.0/ports/{id}/tags":                        writeProjectObject,
	"POST /networking/v2.0/ports/{id}/tags":                       writeProjectObject,
	"DELETE /networking/v2.0/ports/{id}/tags":                     writeProjectObject,
	"GET /networking/v2.0/ports/{id}/tags/{tag}":                  readProjectObject,
	"PUT /networking/v2.0/ports/{id}/tags/{tag}":                  writeProjectObject,
	"DELETE /networking/v2.0/ports/{id}/tags/{tag}":               writeProjectObject,
	"GET /networking/v2.0/trunks/{id}/tags":                       readProjectObject,
	"PUT /networking/v2.0/trunks/{id}/tags":                       withoutService(writeProjectObject),
	"POST /networking/v2.0/trunks/{id}/tags":                      withoutService(writeProjectObject),
	"DELETE /networking/v2.0/trunks/{id}/tags":                    withoutService(writeProjectObject),
	"GET /networking/v2.0/trunks/{id}/tags/{tag}":                 readProjectObject,
	"PUT /networking/v2.0/trunks/{id}/tags/{tag}":                 withoutService(writeProjectObject),
	"DELETE /networking/v2.0/trunks/{id}/tags/{tag}":              withoutService(writeProjectObject),
	"GET /networking/v2.0/agents":                                 listOwn,
	"GET /networking/v2.0/agents/{id}":                            readHiddenObject,
	"PUT /networking/v2.0/agents/{id}":                            withoutService(writeHiddenObject),
	"DELETE /networking/v2.0/agents/{id}":                         withoutService(writeHiddenObject),
	"GET /networking/v2.0/agents/{id}/dhcp-networks":              adminOnly,
	"POST /networking/v2.0/agents/{id}/dhcp-networks":             roleAdminOnly,
	"DELETE /networking/v2.0/agents/{id}/dhcp-networks/{network}": roleAdminOnly,
	"GET /networking/v2.0/networks/{id}/dhcp-agents":              adminOnly,
	"GET /reservation/":                                           anyone,
	"GET /reservation/versions":                                   anyone,
	"GET /reservation/v1/leases":                                  withoutService(listOwn),
	"POST /reservation/v1/leases":                                 withoutService(createOwn),
	"POST /reservation/v1/plans":                                  withoutService(createOwn),
	"GET /reservation/v1/leases/{id}":                             withoutService(readVisibleObject),
	"PUT /reservation/v1/leases/{id}":                             withoutService(writeVisibleObject),
	"DELETE /reservation/v1/leases/{id}":                          withoutService(writeVisibleObject),
	"GET /reservation/v1/os-hosts":                                roleAdminOnly,
	"POST /reservation/v1/os-hosts":                               roleAdminOnly,
	"GET /reservation/v1/os-hosts/allocations":                    roleAdminOnly,
	"GET /reservation/v1/os-hosts/properties":                     roleAdminOnly,
	"PATCH /reservation/v1/os-hosts/properties/{id}":              roleAdminOnly,
	"GET /reservation/v1/os-hosts/{id}":                           roleAdminOnly,
	"PUT /reservation/v1/os-hosts/{id}":                           roleAdminOnly,
	"DELETE /reservation/v1/os-hosts/{id}":                        roleAdminOnly,
	"GET /reservation/v1/os-hosts/{id}/allocation":                roleAdminOnly,
	"GET /reservation/v1/floatingips":                             withoutService(listOwn),
	"POST /reservation/v1/floatingips":                            roleAdminOnly,
	"GET /reservation/v1/floatingips/{id}":                        withoutService(listOwn),
	"DELETE /reservation/v1/floatingips/{id}":                     roleAdminOnly,
	"GET /reservation/v1/networks":                                roleAdminOnly,
	"POST /reservation/v1/networks":                               roleAdminOnly,
	"GET /reservation/v1/networks/allocations":                    roleAdminOnly,
	"GET /reservation/v1/networks/properties":                     roleAdminOnly,
	"PATCH /reservation/v1/networks/properties/{id}":              roleAdminOnly,
	"GET /reservation/v1/networks/{id}":                           roleAdminOnly,
	"PUT /reservation/v1/networks/{id}":                           roleAdminOnly,
	"DELETE /reservation/v1/networks/{id}":                        roleAdminOnly,
	"GET /reservation/v1/networks/{id}/allocation":                roleAdminOnly,
	"GET /reservation/v1/devices":                                 roleAdminOnly,
	"POST /reservation/v1/devices":                                roleAdminOnly,
	"GET /reservation/v1/devices/allocations":                     roleAdminOnly,
	"GET /reservation/v1/devices/properties":                      roleAdminOnly,
	"PATCH /reservation/v1/devices/properties/{id}":               roleAdminOnly,
	"GET /reservation/v1/devices/{id}":                            roleAdminOnly,
	"PUT /reservation/v1/devices/{id}":                            roleAdminOnly,
	"DELETE /reservation/v1/devices/{id}":                         roleAdminOnly,
	"GET /reservation/v1/devices/{id}/allocation":                 roleAdminOnly,
}

// memberBodies are bodies without the attributes that only administrators may set.
var memberBodies = map[string]string{
	"POST /reservation/v1/os-hosts":                    `{"name":7}`,
	"POST /networking/v2.0/networks":                   `{"network":{"name":"mine"}}`,
	"PUT /networking/v2.0/networks/{id}":               `{"network":{"name":"mine"}}`,
	"POST /networking/v2.0/subnets":                    `{"subnet":{"network_id":"{network}","ip_version":4,"cidr":"10.8.0.0/24"}}`,
	"POST /networking/v2.0/ports":                      `{"port":{"network_id":"{network}"}}`,
	"PUT /networking/v2.0/ports/{id}":                  `{"port":{"name":"mine"}}`,
	"POST /networking/v2.0/trunks":                     `{"trunk":{"port_id":"{lone}"}}`,
	"POST /networking/v2.0/security-group-rules":       `{"security_group_rule":{"security_group_id":"{group}","direction":"ingress","protocol":"tcp"}}`,
	"POST /networking/v2.0/security-groups":            `{"security_group":{"name":"mine"}}`,
	"PUT /networking/v2.0/security-group-rules/{id}":   `{"security_group_rule":{"description":"mine"}}`,
	"PUT /networking/v2.0/trunks/{id}":                 `{"trunk":{"name":"mine"}}`,
	"PUT /networking/v2.0/trunks/{id}/add_subports":    `{"sub_ports":[]}`,
	"PUT /networking/v2.0/trunks/{id}/remove_subports": `{"sub_ports":[]}`,
	"PUT /reservation/v1/leases/{id}":                  `{"name":"mine"}`,
}

func TestPolicy_EveryRouteForEveryCaller(t *testing.T) {
	t.Parallel()
	h := newHostileClient(t)
	seen := map[string]bool{}
	try := func(api *osapi.API, r osapi.Route) {
		name := r.Method + " " + api.Prefix + strings.TrimSuffix(r.Path, ".json")
		allowed, ok := permissions[name]
		if !ok {
			allowed, ok = permissions[api.Prefix]
		}
		if !ok {
			t.Errorf("route %s has no entry in the table permissions, want one", name)
			return
		}
		seen[name], seen[api.Prefix] = true, true
		body, ok := memberBodies[name]
		if !ok {
			body = validBodies[name]
		}
		order := []int{}
		for i := range callers {
			if allowed[i] == 0 {
				order = append(order, i)
			} else {
				// refused callers first, while the object of a DELETE exists
				order = slices.Insert(order, 0, i)
			}
		}
		deleted := false
		for _, i := range order {
			c := callers[i]
			if r.Method == http.MethodDelete && deleted {
				return
			}
			a := attack{
				method: r.Method,
				path:   h.concretePath(api.Prefix + r.Path),
				body:   h.fill(body),
				token:  c.token,
				header: http.Header{},
			}
			if c.roles != "" {
				a.header.Set("X-Roles", c.roles)
			}
			deleted = allowed[i] == 0
			got := h.attack(a)
			denied := got == 401 || got == 403 ||
				got == 404 && !strings.Contains(name, "{network}") && !strings.Contains(name, "{tag}")
			if allowed[i] != 0 && got != allowed[i] ||
				allowed[i] == 0 && denied && !(name == "GET /placement/" && got == 404) {
				t.Errorf("send %s as caller %s: got status %d, want %d (0: any status except a denial)",
					name, c.name, got, allowed[i])
			}
		}
	}
	var last []func()
	forEachRoute(h, func(api *osapi.API, r osapi.Route) {
		if r.Method == http.MethodDelete {
			last = append(last, func() { try(api, r) })
			return
		}
		try(api, r)
	})
	for i := range last { // ports are deleted before their networks
		last[len(last)-1-i]()
	}
	for name := range permissions {
		if !seen[name] {
			t.Errorf(
				"the table permissions has the entry %s, but no API has this route; want only routes that exist",
				name,
			)
		}
	}
}

func TestPolicy_UsagesForReadersOfProject(t *testing.T) {
	t.Parallel()
	h := newHostileClient(t)
	for token, want := range map[string]int{"rita:demo": 200, "eve:other": 403} {
		if got := h.attack(attack{
			method: http.MethodGet,
			path:   "/placement/usages?project_id=demo",
			token:  token,
			header: http.Header{"X-Roles": {"reader"}},
		}); got != want {
			t.Errorf("GET /placement/usages as %s: got status %d, want %d", token, got, want)
		}
	}
}
