package neutron

import (
	"net/http"
	"strings"

	"berth/internal/api/osapi"
	"berth/internal/version"
)

type object = map[string]any

// discovery returns the routes that list the API's versions, resources and extensions.
func discovery() []osapi.Route {
	get := func(path string, open bool, h osapi.Handler) osapi.Route {
		return osapi.Route{
			Method: http.MethodGet,
			Path:   path,
			Open:   open,
			Handle: h,
		}
	}
	return []osapi.Route{
		get("/", true, listVersions),
		get("/v2.0", true, listVersions),
		get("/v2.0/", true, listResources),
		get("/v2.0/extensions", false, listExtensions),
		get("/v2.0/extensions/{alias}", false, showExtension),
	}
}

// baseURL returns the URL at which the client of the request reaches the API.
func baseURL(r *http.Request) string { return osapi.BaseURL(r) + prefix }

func selfLink(href string) []object { return []object{{"rel": "self", "href": href}} }

func listVersions(r *http.Request) (int, any, error) {
	entry := object{"id": version.Networking.Newest, "status": "CURRENT", "links": selfLink(baseURL(r) + "/v2.0/")}
	return http.StatusOK, object{"versions": []object{entry}}, nil
}

func listResources(r *http.Request) (int, any, error) {
	list := []object{}
	for _, name := range []string{"network", "subnet", "port", "trunk", "security_group", "security_group_rule"} {
		collection := name + "s"
		list = append(list, object{
			"name":       name,
			"collection": collection,
			"links":      selfLink(baseURL(r) + "/v2.0/" + strings.ReplaceAll(collection, "_", "-")),
		})
	}
	return http.StatusOK, object{"resources": list}, nil
}

// extensions are the API extensions that berth implements, by alias.
var extensions = []struct{ alias, name, description string }{
	{"agent", "agent", "The agent management extension."},
	{"allowed-address-pairs", "Allowed Address Pairs", "Provides allowed address pairs"},
	{"availability_zone", "Availability Zone", "The availability zone extension."},
	{
		"availability_zone_filter",
		"Availability Zone Filter Extension",
		"Add filter parameters to AvailabilityZone resource",
	},
	{"binding", "Port Binding", "Expose port bindings of a virtual port to external application"},
	{
		"binding-extended",
		"Port Bindings Extended",
		"Expose port bindings of a virtual port to external application",
	},
	{"dhcp_agent_scheduler", "DHCP Agent Scheduler", "Schedule networks among dhcp agents"},
	{
		"empty-string-filtering",
		"Empty String Filtering Extension",
		"Allow filtering by attributes with empty string value",
	},
	{"external-net", "Neutron external network", "Adds external network attribute to network resource."},
	{"extra_dhcp_opt", "Neutron Extra DHCP options", "Extra options configuration for DHCP"},
	{"filter-validation", "Filter parameters validation", "Provides validation on filter parameters."},
	{
		"ip-substring-filtering",
		"IP address substring filtering",
		"Provides IP address substring filtering when listing ports",
	},
	{
		"multi-provider",
		"Multi Provider Network",
		"Expose mapping of virtual networks to multiple physical networks",
	},
	{"net-mtu", "Network MTU", "Provides MTU attribute for a network resource."},
	{
		"net-mtu-writable",
		"Network MTU (writable)",
		"Provides a writable MTU attribute for a network resource.",
	},
	{"network_availability_zone", "Network Availability Zone", "Availability zone support for network."},
	{
		"network-ip-availability",
		"Network IP Availability",
		"Provides IP availability data for each network and subnet.",
	},
	{"pagination", "Pagination support", "Extension that indicates that pagination is enabled."},
	{"port-mac-address-regenerate", "Port MAC address regenerate", "Network port MAC address regenerate"},
	{"port-security", "Port Security", "Provides port security"},
	{"project-id", "project_id field enabled", "Extension that indicates that project_id field is enabled."},
	{"provider", "Provider Network", "Expose mapping of virtual networks to physical networks"},
	{
		"revision-if-match",
		"If-Match constraints based on revision_number",
		"Extension indicating that If-Match based on revision_number is supported.",
	},
	{
		"quota-check-limit",
		"Quota engine limit check",
		"Support for checking the resource usage before applying a new quota limit",
	},
	{
		"quota-check-limit-default",
		"Quota engine limit check by default",
		"By default, the quota engine checks the resource usage before applying a new quota limit",
	},
	{
		"quota_details",
		"Quota details management support",
		"Expose functions for quotas usage statistics per project",
	},
	{"quotas", "Quota management support", "Expose functions for quotas management per project"},
	{"security-group", "security-group", "The security groups extension."},
	{"sort-key-validation", "Sort keys validation", "Provides validation on sort keys."},
	{"sorting", "Sorting support", "Extension that indicates that sorting is enabled."},
	{
		"standard-attr-description",
		"standard-attr-description",
		"Extension to add descriptions to standard attributes",
	},
	{
		"standard-attr-revisions",
		"Resource revision numbers",
		"This extension will display the revision number of neutron resources.",
	},
	{
		"standard-attr-tag",
		"Tag support for resources with standard attribute: network, subnet, port, trunk, security_group",
		"Enables to set tag on resources with standard attribute.",
	},
	{
		"standard-attr-timestamp",
		"Resource timestamps",
		"Adds created_at and updated_at fields to all Neutron resources that have Neutron standard attributes.",
	},
	{
		"stateful-security-group",
		"Stateful security group",
		"Indicates if the security group is stateful or not",
	},
	{
		"subnet-service-types",
		"Subnet service types",
		"Provides ability to set the subnet service_types field",
	},
	{"tag-creation", "Tag creation extension", "Allow to create multiple tags for a resource"},
	{
		"tag-ports-during-bulk-creation",
		"Tag Ports During Bulk Creation",
		"Allow to tag ports during bulk creation",
	},
	{"trunk", "Trunk Extension", "Provides support for trunk ports"},
	{"trunk-details", "Trunk port details", "Expose trunk port details"},
}

func extension(i int) object {
	e := extensions[i]
	return object{
		"alias":       e.alias,
		"name":        e.name,
		"description": e.description,
		"updated":     "2016-09-13T10:00:00-00:00",
		"links":       []any{},
	}
}

func listExtensions(*http.Request) (int, any, error) {
	list := make([]object, len(extensions))
	for i := range extensions {
		list[i] = extension(i)
	}
	return http.StatusOK, object{"extensions": list}, nil
}

func showExtension(r *http.Request) (int, any, error) {
	for i, e := range extensions {
		if e.alias == pathValue(r, "alias") {
			return http.StatusOK, object{"extension": extension(i)}, nil
		}
	}
	return 0, nil, osapi.Fault(http.StatusNotFound, "ExtensionNotFound",
		"Extension with alias %s does not exist", pathValue(r, "alias"))
}
