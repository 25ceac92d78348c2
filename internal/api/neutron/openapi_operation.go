package neutron

import (
	"maps"
	"net/http"
	"slices"

	"berth/internal/api/openapi"
	"berth/internal/network"
	"berth/internal/network/attribute"
)

func subportOperations() []openapi.Operation {
	const path = "/v2.0/trunks/{id}/"
	trunk := trunks(noStore).viewSchema(trunkSchemas())
	list := func(one openapi.Schema) openapi.Schema {
		return openapi.Input(
			openapi.Fields{"sub_ports": {"type": "array", "items": one, "maxItems": network.MaxVLAN}},
			"sub_ports",
		)
	}
	removed := openapi.Input(openapi.Fields{
		"port_id":           openapi.UUID(),
		"segmentation_type": openapi.String(),
		"segmentation_id":   openapi.Integer(),
	}, "port_id")
	return []openapi.Operation{
		{
			Method:    http.MethodGet,
			Path:      path + "get_subports",
			Summary:   "List the subports of a trunk.",
			Responses: openapi.Returns(http.StatusOK, of("sub_ports", openapi.Array(subportSchema()))),
		},
		{
			Method:    http.MethodPut,
			Path:      path + "add_subports",
			Summary:   "Add subports to a trunk.",
			Body:      list(subportSchema()),
			Responses: openapi.Returns(http.StatusOK, trunk),
		},
		{
			Method:    http.MethodPut,
			Path:      path + "remove_subports",
			Summary:   "Remove subports from a trunk.",
			Body:      list(removed),
			Responses: openapi.Returns(http.StatusOK, trunk),
		},
	}
}

// availabilityOperations describes the routes of IP availabilities and availability zones.
func availabilityOperations() []openapi.Operation {
	owner := openapi.Fields{}
	var filters []openapi.Parameter
	for _, name := range slices.Sorted(maps.Keys(networkAttributeOf)) {
		owner[name] = openapi.String()
		filters = append(filters, openapi.Parameter{Name: name, Schema: openapi.String()})
	}
	filters = append(
		filters,
		openapi.Parameter{Name: "ip_version", Schema: openapi.Schema{"type": "integer", "enum": []int{4, 6}}},
	)
	subnet := openapi.Object(openapi.Fields{
		"subnet_id":   openapi.UUID(),
		"subnet_name": openapi.String(),
		"ip_version":  openapi.Integer(),
		"cidr":        openapi.String(),
		"total_ips":   openapi.Integer(),
		"used_ips":    openapi.Integer(),
	})
	fields := maps.Clone(owner)
	maps.Copy(fields, openapi.Fields{
		"total_ips":              openapi.Integer(),
		"used_ips":               openapi.Integer(),
		"subnet_ip_availability": openapi.Array(subnet),
	})
	one := openapi.Object(fields).Named("IPAvailability")
	zone := openapi.Object(openapi.Fields{
		"name":     openapi.String(),
		"resource": openapi.String(),
		"state":    openapi.Enum("available", "unavailable"),
	})
	return []openapi.Operation{
		{
			Method:  http.MethodGet,
			Path:    "/v2.0/network-ip-availabilities",
			Summary: "List how many addresses of each network are in use.",
			Query: append(
				filters,
				pageQuery(openapi.Enum(slices.Sorted(maps.Keys(networkAttributeOf))...))...),
			Responses: openapi.Returns(http.StatusOK, listSchema("network_ip_availabilities", one)),
		},
		{
			Method:    http.MethodGet,
			Path:      "/v2.0/network-ip-availabilities/{id}",
			Summary:   "Show how many addresses of a network are in use.",
			Query:     fieldsQuery,
			Responses: openapi.Returns(http.StatusOK, of("network_ip_availability", one)),
		},
		{
			Method:  http.MethodGet,
			Path:    "/v2.0/availability_zones",
			Summary: "List the availability zones that agents report.",
			Query: append(
				[]openapi.Parameter{
					{Name: "name", Schema: openapi.String()},
					{Name: "resource", Schema: openapi.String()},
					{
						Name:   "state",
						Schema: openapi.Enum("available", "unavailable"),
					},
				},
				pageQuery(openapi.String())...),
			Responses: openapi.Returns(http.StatusOK, of("availability_zones", openapi.Array(zone))),
		},
	}
}

func bindingOperations() []openapi.Operation {
	const path, member = "/v2.0/ports/{id}/bindings", "/v2.0/ports/{id}/bindings/{host}"
	view := bindingResource.viewSchema(bindingSchemas())
	body := func(verb attribute.Operations) openapi.Schema {
		return openapi.Input(
			openapi.Fields{"binding": bindingResource.inputSchema(bindingSchemas(), verb)},
			"binding",
		)
	}
	one := of("binding", view)
	filters := pageQuery(openapi.String())
	for _, name := range []string{"host", "status", "vif_type", "vnic_type", "project_id", "tenant_id"} {
		filters = append(filters, openapi.Parameter{Name: name, Schema: openapi.String()})
	}
	return []openapi.Operation{
		{
			Method:    http.MethodGet,
			Path:      path,
			Summary:   "List the bindings of a port.",
			Query:     filters,
			Responses: openapi.Returns(http.StatusOK, of("bindings", openapi.Array(view))),
		},
		{
			Method:    http.MethodPost,
			Path:      path,
			Summary:   "Bind a port to a second host.",
			Body:      body(attribute.OnCreate),
			Responses: openapi.Returns(http.StatusCreated, one),
		},
		{
			Method:    http.MethodGet,
			Path:      member,
			Summary:   "Show the binding of a port to a host.",
			Query:     fieldsQuery,
			Responses: openapi.Returns(http.StatusOK, one),
		},
		{
			Method:    http.MethodPut,
			Path:      member,
			Summary:   "Change the binding of a port to a host.",
			Body:      body(attribute.OnUpdate),
			Responses: openapi.Returns(http.StatusOK, one),
		},
		{
			Method:    http.MethodDelete,
			Path:      member,
			Summary:   "Delete the binding of a port to a host.",
			Responses: openapi.Returns(http.StatusNoContent, nil),
		},
		{
			Method:      http.MethodPut,
			Path:        member + "/activate",
			Summary:     "Activate the binding of a port to a host.",
			Description: "The body of the request has no effect.",
			Responses:   openapi.Returns(http.StatusOK, view),
		},
	}
}

func agentOperations() []openapi.Operation {
	res := agents{}.resource()
	view := res.viewSchema(agentSchemas())
	hosted := networks(noStore).viewSchema(networkSchemas())
	member := res.path() + "/{id}"
	return []openapi.Operation{
		{
			Method:    http.MethodGet,
			Path:      res.path(),
			Summary:   "List agents.",
			Query:     res.listQuery(),
			Responses: openapi.Returns(http.StatusOK, listSchema("agents", view)),
		},
		{
			Method:    http.MethodGet,
			Path:      member,
			Summary:   "Show an agent.",
			Query:     fieldsQuery,
			Responses: openapi.Returns(http.StatusOK, of("agent", view)),
		},
		{
			Method:  http.MethodPut,
			Path:    member,
			Summary: "Change an agent.",
			Body: openapi.Input(
				openapi.Fields{"agent": res.inputSchema(agentSchemas(), attribute.OnUpdate)},
				"agent",
			),
			Responses: openapi.Returns(http.StatusOK, of("agent", view)),
		},
		{
			Method:    http.MethodDelete,
			Path:      member,
			Summary:   "Delete an agent.",
			Responses: openapi.Returns(http.StatusNoContent, nil),
		},
		{
			Method:    http.MethodGet,
			Path:      member + "/dhcp-networks",
			Summary:   "List the networks that a DHCP agent hosts.",
			Query:     fieldsQuery,
			Responses: openapi.Returns(http.StatusOK, of("networks", openapi.Array(hosted))),
		},
		{
			Method:    http.MethodPost,
			Path:      member + "/dhcp-networks",
			Summary:   "Schedule a network to a DHCP agent.",
			Body:      openapi.Input(openapi.Fields{"network_id": openapi.UUID()}, "network_id"),
			Responses: openapi.Returns(http.StatusCreated, openapi.Null()),
		},
		{
			Method:    http.MethodDelete,
			Path:      member + "/dhcp-networks/{network}",
			Summary:   "Remove a network from a DHCP agent.",
			Responses: openapi.Returns(http.StatusNoContent, nil),
		},
		{
			Method:    http.MethodGet,
			Path:      "/v2.0/networks/{id}/dhcp-agents",
			Summary:   "List the DHCP agents that host a network.",
			Query:     fieldsQuery,
			Responses: openapi.Returns(http.StatusOK, of("agents", openapi.Array(view))),
		},
	}
}
