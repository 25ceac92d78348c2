package neutron

import (
	"maps"

	"berth/internal/api/openapi"
	"berth/internal/network"
	"berth/internal/network/attribute"
)

// stamp is the schema of created_at and updated_at.
var stamp = openapi.Schema{"type": "string", "pattern": `^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$`}

// standard returns the schemas of the attributes that all objects have, and of the attributes in `more`.
func standard(more openapi.Fields) openapi.Fields {
	fields := openapi.Fields{
		"id":              openapi.UUID(),
		"project_id":      openapi.Text(255),
		"tenant_id":       openapi.Text(255),
		"description":     openapi.Text(255),
		"revision_number": openapi.Integer(),
		"created_at":      stamp,
		"updated_at":      stamp,
		"tags":            tagList(),
	}
	maps.Copy(fields, more)
	return fields
}

// ownerInput contains the schemas of the owner in requests: null means the same as no value.
func ownerInput(more openapi.Fields) openapi.Fields {
	fields := openapi.Fields{
		"project_id": openapi.Text(255).Nullable(),
		"tenant_id":  openapi.Text(255).Nullable(),
	}
	maps.Copy(fields, more)
	return fields
}

func networkSchemas() attributeSchemas {
	segment := openapi.Fields{
		"provider:network_type":     openapi.Text(32),
		"provider:physical_network": openapi.Text(64).Nullable(),
		"provider:segmentation_id":  openapi.Between(1, 1<<24-1).Nullable(),
	}
	fields := standard(openapi.Fields{
		"name":                    openapi.Text(255),
		"admin_state_up":          openapi.Boolean(),
		"shared":                  openapi.Boolean(),
		"router:external":         openapi.Boolean(),
		"mtu":                     openapi.Between(0, 65535),
		"port_security_enabled":   openapi.Boolean(),
		"is_default":              openapi.Const(false),
		"availability_zone_hints": openapi.Array(openapi.String()),
		"availability_zones":      openapi.Array(openapi.String()),
		"status":                  openapi.String(),
		"subnets":                 openapi.Array(openapi.UUID()),
		"ipv4_address_scope":      openapi.Null(),
		"ipv6_address_scope":      openapi.Null(),
	})
	maps.Copy(fields, segment)
	return attributeSchemas{fields: fields, hidden: []string{"segments"}, input: ownerInput(openapi.Fields{
		"segments": {
			"type":     "array",
			"minItems": 1,
			"maxItems": 1,
			"items":    openapi.Input(segment, "provider:network_type"),
		}})}
}

func subnetSchemas() attributeSchemas {
	address := openapi.String().Describe("An IP address.")
	pools := openapi.Array(openapi.Object(openapi.Fields{"start": address, "end": address}))
	routes := openapi.Array(
		openapi.Object(openapi.Fields{"destination": openapi.String(), "nexthop": address}),
	)
	mode := openapi.AnyOf(openapi.Enum("dhcpv6-stateful", network.Stateless, network.SLAAC), openapi.Null())
	return attributeSchemas{
		hidden: []string{"shared"},
		fields: standard(openapi.Fields{
			"network_id": openapi.UUID(),
			"name":       openapi.Text(255),
			"ip_version": {
				"type": "integer",
				"enum": []int{4, 6},
			},
			"cidr":              openapi.String(),
			"gateway_ip":        address.Nullable(),
			"allocation_pools":  pools,
			"enable_dhcp":       openapi.Boolean(),
			"dns_nameservers":   openapi.Array(address),
			"host_routes":       routes,
			"ipv6_ra_mode":      mode,
			"ipv6_address_mode": mode,
			"subnetpool_id":     openapi.Null(),
			"service_types":     openapi.Array(openapi.Text(255)),
		}),
		input: ownerInput(openapi.Fields{
			"dns_nameservers": openapi.Array(address).Nullable(),
			"host_routes":     routes.Nullable(),
		}),
	}
}

func portSchemas() attributeSchemas {
	address := openapi.String().Describe("An IP address.")
	ips := openapi.Fields{"subnet_id": openapi.UUID(), "ip_address": address}
	pair := openapi.Fields{
		"ip_address":  openapi.String().Describe("An IP address or an address block."),
		"mac_address": openapi.String(),
	}
	option := openapi.Fields{
		"opt_name":   openapi.Name(64),
		"opt_value":  openapi.Text(255),
		"ip_version": {"type": "integer", "enum": []int{4, 6}},
	}
	newOption := maps.Clone(option)
	newOption["opt_value"] = openapi.Text(255).Nullable()
	subports := openapi.Array(
		openapi.Object(openapi.Fields{
			"port_id":           openapi.UUID(),
			"segmentation_type": openapi.String(),
			"segmentation_id":   openapi.Integer(),
			"mac_address":       openapi.String(),
		}, "mac_address"),
	)
	list := func(one openapi.Schema) openapi.Schema { return openapi.Array(one).Nullable() }
	fields := standard(openapi.Fields{
		"network_id":            openapi.UUID(),
		"name":                  openapi.Text(255),
		"admin_state_up":        openapi.Boolean(),
		"mac_address":           openapi.String(),
		"fixed_ips":             openapi.Array(openapi.Object(ips)),
		"device_id":             openapi.Text(255),
		"device_owner":          openapi.Text(255),
		"port_security_enabled": openapi.Boolean(),
		"binding:host_id":       openapi.Text(255),
		"binding:vnic_type":     openapi.String(),
		"binding:profile":       openapi.Map(openapi.Any()),
		"binding:vif_type":      openapi.String(),
		"binding:vif_details":   openapi.Map(openapi.Any()),
		"security_groups":       openapi.Array(openapi.UUID()),
		"allowed_address_pairs": openapi.Array(openapi.Object(pair)),
		"extra_dhcp_opts":       openapi.Array(openapi.Object(option)),
		"status":                openapi.Enum(network.Active, network.Down, network.Build, network.Errored),
		"trunk_details": openapi.Object(
			openapi.Fields{"trunk_id": openapi.UUID(), "sub_ports": subports},
		),
		attribute.Why: whySchema(),
	})
	return attributeSchemas{
		fields: fields,
		single: []string{attribute.Why, "trunk_details"},
		input: ownerInput(openapi.Fields{
			"mac_address":           openapi.String().Nullable(),
			"fixed_ips":             openapi.Array(openapi.Input(ips)),
			"binding:host_id":       openapi.Text(255).Nullable(),
			"binding:profile":       openapi.Map(openapi.Any()).Nullable(),
			"security_groups":       list(openapi.UUID()),
			"allowed_address_pairs": list(openapi.Input(pair, "ip_address")),
			"extra_dhcp_opts":       list(openapi.Input(newOption, "opt_name")),
		}),
	}
}

// whySchema returns the schema of the explanation of the status of a port or a trunk.
func whySchema() openapi.Schema {
	return openapi.Object(openapi.Fields{
		"sentence":         openapi.String(),
		"reason":           openapi.String(),
		"ignored_messages": openapi.Integer(),
		"waiting":          openapi.Array(openapi.Of[waiting]()),
	})
}

// subportSchema returns the schema of a subport in requests and responses.
func subportSchema() openapi.Schema {
	return openapi.Input(openapi.Fields{
		"port_id":           openapi.UUID(),
		"segmentation_type": openapi.String(),
		"segmentation_id":   openapi.Integer(),
	}, "port_id", "segmentation_type")
}

func trunkSchemas() attributeSchemas {
	return attributeSchemas{
		fields: standard(openapi.Fields{
			"port_id":        openapi.UUID(),
			"name":           openapi.Text(255),
			"admin_state_up": openapi.Boolean(),
			"sub_ports": openapi.Schema{
				"type":     "array",
				"items":    subportSchema(),
				"maxItems": network.MaxVLAN,
			},
			"status":      openapi.String(),
			attribute.Why: whySchema(),
		}),
		single: []string{attribute.Why},
		input:  ownerInput(nil),
	}
}

func securityGroupSchemas() attributeSchemas {
	return attributeSchemas{
		fields: standard(openapi.Fields{
			"name":                 openapi.Text(255),
			"stateful":             openapi.Boolean(),
			"shared":               openapi.Boolean(),
			"security_group_rules": openapi.Array(securityRules(noStore).viewSchema(securityRuleSchemas())),
		}),
		input: ownerInput(nil),
	}
}

func securityRuleSchemas() attributeSchemas {
	port := openapi.Between(0, 65535).Nullable()
	return attributeSchemas{
		fields: standard(openapi.Fields{
			"security_group_id":       openapi.UUID(),
			"direction":               openapi.Enum(network.Ingress, network.Egress),
			"ethertype":               openapi.Enum(network.IPv4, network.IPv6),
			"protocol":                openapi.String().Nullable(),
			"port_range_min":          port,
			"port_range_max":          port,
			"remote_ip_prefix":        openapi.String().Nullable(),
			"remote_group_id":         openapi.UUID().Nullable(),
			"remote_address_group_id": openapi.Null(),
			"normalized_cidr":         openapi.String().Nullable(),
		}),
		input: ownerInput(openapi.Fields{"protocol": {"type": []string{"string", "integer", "null"}}}),
	}
}

func bindingSchemas() attributeSchemas {
	return attributeSchemas{
		fields: openapi.Fields{
			"host":        openapi.Name(255),
			"vnic_type":   openapi.String(),
			"profile":     openapi.Map(openapi.Any()),
			"project_id":  openapi.Text(255),
			"tenant_id":   openapi.Text(255),
			"vif_type":    openapi.String(),
			"vif_details": openapi.Map(openapi.Any()),
			"status":      openapi.String(),
		},
	}
}

func agentSchemas() attributeSchemas {
	moment := openapi.Schema{"type": "string", "pattern": `^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\.\d{6}$`}
	text := openapi.String()
	return attributeSchemas{
		fields: openapi.Fields{
			"id":                  openapi.UUID(),
			"agent_type":          text,
			"host":                text,
			"binary":              text,
			"topic":               text,
			"admin_state_up":      openapi.Boolean(),
			"description":         openapi.Text(255).Nullable(),
			"availability_zone":   text.Nullable(),
			"alive":               openapi.Boolean(),
			"configurations":      openapi.Map(openapi.Any()),
			"resources_synced":    openapi.Null(),
			"created_at":          moment,
			"started_at":          moment,
			"heartbeat_timestamp": moment,
			heldAttribute:         openapi.Integer(),
			awaitedAttribute:      openapi.Integer(),
		},
	}
}
