package neutron

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"berth/internal/identity/policy"
	"berth/internal/network/attribute"
)

// Default rules, in addition to the rules with these names in baseRules.
const (
	byAdmin          = "rule:context_is_admin"
	byService        = "rule:admin_or_service"
	byMember         = byAdmin + " or rule:project_member"
	byServiceMember  = byService + " or rule:project_member"
	byReader         = byService + " or rule:project_reader"
	byNetworkOwner   = byService + " or rule:network_owner"
	regularUser      = "rule:regular_user"
	anyProject       = "project_id and tenant_id of another project than the caller's in POST"
	contextIsAdmin   = "context_is_admin"
	serviceRule      = "service_api"
	getPortHost      = "get_port:binding:host_id"
	getBinding       = "get_port_binding"
	getAvailability  = "get_network_ip_availability"
	addSubportsRule  = "add_subports"
	dropSubportsRule = "remove_subports"
)

// Policy contains the policy rules of the Networking API with their defaults. By default a reader reads the
// objects of the reader's project and shared networks, a member writes the objects of the member's project, a
// service reads everything and writes ports, and an administrator does everything.
var Policy = slices.Concat(
	baseRules,
	objectRules("network", networkTarget, objectChecks{
		get:    byReader + " or (rule:regular_user and (rule:shared or rule:external))",
		create: byMember,
		update: byMember,
		delete: byMember,
	}),
	attributeRules("network", networkAttributes, networkTarget, byAdmin),
	objectRules("subnet", subnetTarget, objectChecks{
		get:    byReader + " or (rule:regular_user and rule:shared)",
		create: byAdmin + " or (rule:project_member and rule:network_owner)",
		update: byMember,
		delete: byMember,
	}),
	objectRules("port", portTarget, objectChecks{
		get:    byReader + " or (rule:regular_user and rule:network_owner)",
		create: byService + " or (rule:project_member and (rule:network_owner or rule:shared or rule:external))",
		update: byServiceMember,
		delete: byServiceMember + " or (role:member and rule:network_owner)",
	}),
	attributeRules("port", attribute.Ports, portTarget, byService),
	portOwnerRules(),
	bindingRules(),
	objectRules("trunk", ownerTarget, objectChecks{
		get:    byReader,
		create: byMember,
		update: byMember,
		delete: byMember,
	}),
	[]policy.Default{
		{
			Name:       "get_subports",
			Check:      byReader,
			Guards:     []string{"GET /v2.0/trunks/{id}/get_subports"},
			Attributes: ownerTarget,
		},
		{
			Name:       addSubportsRule,
			Check:      byMember,
			Guards:     []string{"PUT /v2.0/trunks/{id}/add_subports"},
			Attributes: ownerTarget,
		},
		{
			Name:       dropSubportsRule,
			Check:      byMember,
			Guards:     []string{"PUT /v2.0/trunks/{id}/remove_subports"},
			Attributes: ownerTarget,
		},
	},
	objectRules("security_group", ownerTarget, objectChecks{
		get:    byReader,
		create: byMember,
		update: byMember,
		delete: byMember,
	}),
	objectRules("security_group_rule", groupRuleTarget, objectChecks{
		get:    byReader + " or (rule:regular_user and rule:sg_owner)",
		create: byAdmin + " or (rule:project_member and rule:sg_owner)",
		update: byMember,
		delete: byMember,
	}),
	agentRules(),
	quotaRules(),
	[]policy.Default{
		{
			Name:  getAvailability,
			Check: byAdmin,
			Guards: []string{
				"GET /v2.0/network-ip-availabilities",
				"GET /v2.0/network-ip-availabilities/{id}",
			},
			Attributes: networkTarget,
		},
		{
			Name:       "get_availability_zone",
			Check:      regularUser,
			Guards:     []string{"GET /v2.0/availability_zones"},
			Attributes: []string{},
		},
		{
			Name:       "get_extension",
			Check:      regularUser,
			Guards:     []string{"GET /v2.0/extensions", "GET /v2.0/extensions/{alias}"},
			Attributes: []string{},
		},
	},
)

// baseRules are the rules to which other rules refer. Their names are those of Neutron where Neutron has such
// a rule.
var baseRules = []policy.Default{
	{
		Name:       contextIsAdmin,
		Check:      "role:admin",
		Guards:     []string{anyProject, "deletion of a default security group"},
		Attributes: []string{},
	},
	{
		Name:       serviceRule,
		Check:      "role:service",
		Guards:     []string{anyProject},
		Attributes: []string{},
	},
	{Name: "admin_or_service", Check: "rule:context_is_admin or rule:service_api"},
	{
		Name:       "regular_user",
		Check:      "rule:admin_or_service or role:member or role:reader",
		Guards:     []string{"GET /v2.0/quotas/tenant", "GET /v2.0/quotas/project"},
		Attributes: []string{},
	},
	{Name: "owner", Check: "tenant_id:%(tenant_id)s"},
	{Name: "project_reader", Check: "(role:reader or role:member) and rule:owner"},
	{Name: "project_member", Check: "role:member and rule:owner"},
	{Name: "network_owner", Check: "tenant_id:%(network:tenant_id)s"},
	{Name: "sg_owner", Check: "tenant_id:%(security_group:tenant_id)s"},
	{Name: "shared", Check: "field:networks:shared=True"},
	{Name: "external", Check: "field:networks:router:external=True"},
	{Name: "network_device", Check: "field:port:device_owner=~^network:"},
}

// The attributes that the targets of the rules have.
var (
	ownerTarget   = []string{"project_id", "tenant_id"}
	networkTarget = append([]string{"shared", "router:external"}, ownerTarget...)
	parentTarget  = []string{
		"network:project_id",
		"network:tenant_id",
		"network:shared",
		"network:router:external",
	}
	subnetTarget    = slices.Concat(ownerTarget, parentTarget)
	portTarget      = slices.Concat(ownerTarget, []string{"device_owner"}, parentTarget)
	groupRuleTarget = append(
		[]string{"security_group:project_id", "security_group:tenant_id"},
		ownerTarget...)
	agentTarget = []string{"host", "agent_type"}
)

// objectChecks are the default rules of the operations on one kind of object.
type objectChecks struct{ get, create, update, delete string }

// objectRules returns the rules of the operations on objects. The tags of an object belong to the object.
func objectRules(singular string, target []string, checks objectChecks) []policy.Default {
	path := "/v2.0/" + strings.ReplaceAll(singular, "_", "-") + "s"
	member, tags, tag := path+"/{id}", path+"/{id}/tags", path+"/{id}/tags/{tag}"
	get, update := []string{"GET " + path, "GET " + member}, []string{"PUT " + member}
	if singular != "security_group_rule" {
		get = append(get, "GET "+tags, "GET "+tag)
		update = append(update, "POST "+tags, "PUT "+tags, "DELETE "+tags, "PUT "+tag, "DELETE "+tag)
	}
	return []policy.Default{
		{
			Name:       "get_" + singular,
			Check:      checks.get,
			Guards:     get,
			Attributes: target,
		},
		{
			Name:       "create_" + singular,
			Check:      checks.create,
			Guards:     []string{"POST " + path},
			Attributes: target,
		},
		{
			Name:       "update_" + singular,
			Check:      checks.update,
			Guards:     update,
			Attributes: target,
		},
		{
			Name:       "delete_" + singular,
			Check:      checks.delete,
			Guards:     []string{"DELETE " + member},
			Attributes: target,
		},
	}
}

// attributeRules returns the rules of those attributes that not every caller may set or see. The rule of an
// attribute that a caller sees cannot compare attributes of the network to which the object belongs.
func attributeRules[N, C any](
	singular string,
	table []attribute.Definition[N, C],
	target []string,
	write string,
) (rules []policy.Default) {
	path := "/v2.0/" + singular + "s"
	read := slices.DeleteFunc(slices.Clone(target),
		func(name string) bool { return strings.HasPrefix(name, "network:") })
	for _, d := range table {
		for _, verb := range []attribute.Operations{attribute.OnCreate, attribute.OnUpdate} {
			if d.AdminOnlyWrite && d.SettableOn&verb != 0 {
				rules = append(rules, attributeRule(verb, singular, d.Name, target, write))
			}
		}
		if d.AdminOnlyRead && d.Name != "segments" {
			rules = append(rules, policy.Default{
				Name:       "get_" + singular + ":" + d.Name,
				Check:      byService,
				Attributes: read,
				Guards: []string{
					fmt.Sprintf("%s in GET %s, also as filter and sort key", d.Name, path),
				},
			})
		}
	}
	return rules
}

func attributeRule(
	verb attribute.Operations,
	singular, name string,
	target []string,
	check string,
) policy.Default {
	method, path := http.MethodPost, "/v2.0/"+singular+"s"
	if verb == attribute.OnUpdate {
		method, path = http.MethodPut, path+"/{id}"
	}
	return policy.Default{
		Name:       verb.String() + "_" + singular + ":" + name,
		Check:      check,
		Attributes: target,
		Guards:     []string{fmt.Sprintf("%s in %s %s", name, method, path)},
	}
}

// portOwnerRules returns the rules of those attributes of a port that ownerAttributes returns.
func portOwnerRules() (rules []policy.Default) {
	for _, verb := range []attribute.Operations{attribute.OnCreate, attribute.OnUpdate} {
		mac := byNetworkOwner
		if verb == attribute.OnUpdate {
			mac = byService
		}
		for _, a := range []struct{ name, check string }{
			{"device_owner", "not rule:network_device or " + byNetworkOwner}, {"mac_address", mac}, {"fixed_ips:ip_address", byNetworkOwner},
			{"port_security_enabled", byNetworkOwner}, {"allowed_address_pairs", byNetworkOwner},
			{"extra_dhcp_opts:client-id", byNetworkOwner},
		} {
			rules = append(rules, attributeRule(verb, "port", a.name, portTarget, a.check))
		}
	}
	return rules
}

func bindingRules() []policy.Default {
	const all, one = "/v2.0/ports/{id}/bindings", "/v2.0/ports/{id}/bindings/{host}"
	return []policy.Default{
		{
			Name:       getBinding,
			Check:      byService,
			Guards:     []string{"GET " + all, "GET " + one},
			Attributes: portTarget,
		},
		{
			Name:       "create_port_binding",
			Check:      byService,
			Guards:     []string{"POST " + all},
			Attributes: portTarget,
		},
		{
			Name:       "update_port_binding",
			Check:      byService,
			Guards:     []string{"PUT " + one},
			Attributes: portTarget,
		},
		{
			Name:       "delete_port_binding",
			Check:      byService,
			Guards:     []string{"DELETE " + one},
			Attributes: portTarget,
		},
		{
			Name:       "activate",
			Check:      byService,
			Guards:     []string{"PUT " + one + "/activate"},
			Attributes: portTarget,
		},
	}
}

func agentRules() []policy.Default {
	const all, one = "/v2.0/agents", "/v2.0/agents/{id}"
	return []policy.Default{
		{
			Name:       "get_agent",
			Check:      byService,
			Guards:     []string{"GET " + all, "GET " + one},
			Attributes: agentTarget,
		},
		{
			Name:       "update_agent",
			Check:      byAdmin,
			Guards:     []string{"PUT " + one},
			Attributes: agentTarget,
		},
		{
			Name:       "delete_agent",
			Check:      byAdmin,
			Guards:     []string{"DELETE " + one},
			Attributes: agentTarget,
		},
		{
			Name:       "get_dhcp-networks",
			Check:      byService,
			Guards:     []string{"GET " + one + "/dhcp-networks"},
			Attributes: agentTarget,
		},
		{
			Name:       "create_dhcp-network",
			Check:      byAdmin,
			Guards:     []string{"POST " + one + "/dhcp-networks"},
			Attributes: agentTarget,
		},
		{
			Name:       "delete_dhcp-network",
			Check:      byAdmin,
			Guards:     []string{"DELETE " + one + "/dhcp-networks/{network}"},
			Attributes: agentTarget,
		},
		{
			Name:       "get_dhcp-agents",
			Check:      byService,
			Guards:     []string{"GET /v2.0/networks/{id}/dhcp-agents"},
			Attributes: networkTarget,
		},
	}
}

func quotaRules() []policy.Default {
	const all, one = "/v2.0/quotas", "/v2.0/quotas/{project}"
	return []policy.Default{
		{
			Name:  "get_quota",
			Check: byReader,
			Guards: []string{
				"GET " + all,
				"GET " + one,
				"GET " + one + "/default",
				"GET " + one + "/details",
			},
			Attributes: ownerTarget,
		},
		{
			Name:       "update_quota",
			Check:      byAdmin,
			Guards:     []string{"PUT " + one},
			Attributes: ownerTarget,
		},
		{
			Name:       "delete_quota",
			Check:      byAdmin,
			Guards:     []string{"DELETE " + one},
			Attributes: ownerTarget,
		},
	}
}
