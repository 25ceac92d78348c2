package blazar

import (
	"net/http"
	"slices"

	"berth/internal/api/openapi"
)

// capability is the schema of an extra capability in a request.
var capability = openapi.Schema{"type": []string{"string", "number", "boolean"}}

// hostNumber is the schema of the ID of a host.
var hostNumber = openapi.Schema{"type": "string", "pattern": "^[0-9]+$"}

// replaceable returns the schema of a field of a host whose value an extra capability with the same name
// replaces by a string.
func replaceable(s openapi.Schema) openapi.Schema { return openapi.AnyOf(s, openapi.String()) }

func hostOperations() []openapi.Operation {
	text := openapi.String()
	host := openapi.Object(openapi.Fields{
		"id":                  text,
		"hypervisor_hostname": text,
		"service_name":        text,
		"hypervisor_type":     text,
		"hypervisor_version":  replaceable(openapi.Integer()),
		"vcpus":               replaceable(openapi.Integer()),
		"memory_mb":           replaceable(openapi.Integer()),
		"local_gb":            replaceable(openapi.Integer()),
		"cpu_info":            text,
		"availability_zone":   text,
		"reservable":          replaceable(openapi.Boolean()),
		"status":              replaceable(openapi.Null()),
		"trust_id":            replaceable(openapi.Null()),
		"created_at":          replaceable(stampText),
		"updated_at":          replaceable(stampText.Nullable()),
		quarantineAttribute:   text,
	}, quarantineAttribute).
		Open(text.Describe("An extra capability. It replaces the value of another field with the same name.")).
		Named("Host")
	one, all := of("host", host), of("hosts", openapi.Array(host))
	create := openapi.Schema{
		"type":                 "object",
		"required":             []string{"name"},
		"properties":           openapi.Fields{"name": openapi.Name(255)},
		"additionalProperties": capability,
		"maxProperties":        maxParameters,
	}
	return append([]openapi.Operation{
		{
			Method:    "GET",
			Path:      "/v1/os-hosts",
			Summary:   "List hosts.",
			Query:     pageParameters(hostNumber),
			Responses: versioned(http.StatusOK, all),
		},
		{
			Method:    "POST",
			Path:      "/v1/os-hosts",
			Summary:   "Register a host of Nova, with its extra capabilities.",
			Body:      create,
			Responses: versioned(http.StatusCreated, one),
		},
		{
			Method:    "GET",
			Path:      "/v1/os-hosts/{id}",
			Summary:   "Show a host.",
			Responses: versioned(http.StatusOK, one),
		},
		{
			Method:    "PUT",
			Path:      "/v1/os-hosts/{id}",
			Summary:   "Set extra capabilities of a host.",
			Body:      capabilitiesSchema(capability),
			Responses: versioned(http.StatusOK, one),
		},
		{
			Method:    "DELETE",
			Path:      "/v1/os-hosts/{id}",
			Summary:   "Unregister a host.",
			Responses: versioned(http.StatusNoContent, nil),
		},
	}, useOperations("/v1/os-hosts", "hosts", hostNumber)...)
}

func capabilitiesSchema(value openapi.Schema) openapi.Schema {
	return openapi.Schema{
		"type":                 "object",
		"minProperties":        1,
		"maxProperties":        maxParameters,
		"additionalProperties": value,
	}
}

// useOperations returns the operations that hosts, network segments and devices share.
func useOperations(path, plural string, id openapi.Schema) []openapi.Operation {
	use := openapi.Of[useView]().With("reservations", openapi.Array(openapi.Of[claimView]().With("start_date", dateText).With("end_date", dateText))).
		Named("Allocation")
	query := []openapi.Parameter{
		{Name: "lease_id", Schema: openapi.UUID()},
		{Name: "reservation_id", Schema: openapi.UUID()},
	}
	property := openapi.Object(openapi.Fields{
		"property": openapi.String(),
		"private":  openapi.Boolean(),
		"values":   openapi.Array(openapi.String()),
	}, "private", "values")
	changed := openapi.Object(openapi.Fields{
		"id":            openapi.UUID(),
		"resource_type": openapi.String(),
		"property_name": openapi.String(),
		"private":       openapi.Boolean(),
		"created_at":    dateText,
		"updated_at":    dateText.Nullable(),
	})
	return []openapi.Operation{
		{
			Method:    "GET",
			Path:      path + "/allocations",
			Summary:   "List the reservations of all " + plural + ".",
			Query:     slices.Concat(query, pageParameters(id)),
			Responses: versioned(http.StatusOK, of("allocations", openapi.Array(use))),
		},
		{
			Method:    "GET",
			Path:      path + "/{id}/allocation",
			Summary:   "List the reservations of one of the " + plural + ".",
			Query:     query,
			Responses: versioned(http.StatusOK, of("allocation", use)),
		},
		{
			Method:  "GET",
			Path:    path + "/properties",
			Summary: "List the capabilities of the " + plural + ".",
			Query: []openapi.Parameter{
				{
					Name:        "detail",
					Description: "Any value: also return private and values.",
					Schema:      openapi.String(),
				},
				{
					Name:        "all",
					Description: "Any value: also list private capabilities.",
					Schema:      openapi.String(),
				}},
			Responses: versioned(http.StatusOK, of("resource_properties", openapi.Array(property))),
		},
		{
			Method:    "PATCH",
			Path:      path + "/properties/{id}",
			Summary:   "Make a capability private or public.",
			Body:      openapi.Input(openapi.Fields{"private": openapi.Boolean()}, "private"),
			Responses: versioned(http.StatusOK, of("resource_property", changed)),
		},
	}
}

func addressOperations() []openapi.Operation {
	address := openapi.Of[addressView]().With("created_at", openapi.AnyOf(stampText, dateText)).
		With("updated_at", stampText.Nullable()).
		Named("FloatingIP")
	one := of("floatingip", address)
	return []openapi.Operation{
		{
			Method:    "GET",
			Path:      "/v1/floatingips",
			Summary:   "List the floating IPs that leases can reserve.",
			Query:     pageParameters(openapi.UUID()),
			Responses: versioned(http.StatusOK, of("floatingips", openapi.Array(address))),
		},
		{
			Method:  "POST",
			Path:    "/v1/floatingips",
			Summary: "Register a floating IP.",
			Body: openapi.Input(openapi.Fields{
				"floating_network_id": openapi.UUID(),
				"floating_ip_address": openapi.String(),
			}, "floating_network_id", "floating_ip_address"),
			Responses: versioned(http.StatusCreated, one),
		},
		{
			Method:    "GET",
			Path:      "/v1/floatingips/{id}",
			Summary:   "Show a floating IP.",
			Responses: versioned(http.StatusOK, one),
		},
		{
			Method:    "DELETE",
			Path:      "/v1/floatingips/{id}",
			Summary:   "Unregister a floating IP.",
			Responses: versioned(http.StatusNoContent, nil),
		},
	}
}

// operations describes the routes of a collection.
func (c resourceCollection) operations() []openapi.Operation {
	fields := openapi.Fields{
		"id":         openapi.UUID(),
		"created_at": stampText,
		"updated_at": stampText.Nullable(),
	}
	if c.number != "" {
		fields[c.number] = openapi.Integer()
	}
	if c.optional != "" {
		fields[c.optional] = openapi.String().Nullable()
	}
	resource := openapi.Object(fields).
		Open(openapi.String().Describe("An attribute or an extra capability.")).
		Named("Reservable_" + c.singular)
	one, path := of(c.singular, resource), "/v1/"+c.plural
	removable := openapi.Schema{
		"type":        []string{"string", "number", "boolean", "null"},
		"description": "null removes the attribute or capability.",
	}
	return append([]openapi.Operation{
		{
			Method:    "GET",
			Path:      path,
			Summary:   "List " + c.plural + ".",
			Query:     pageParameters(openapi.UUID()),
			Responses: versioned(http.StatusOK, of(c.plural, openapi.Array(resource))),
		},
		{
			Method:    "POST",
			Path:      path,
			Summary:   "Register a " + c.singular + ".",
			Body:      capabilitiesSchema(capability),
			Responses: versioned(http.StatusCreated, one),
		},
		{
			Method:    "GET",
			Path:      path + "/{id}",
			Summary:   "Show a " + c.singular + ".",
			Responses: versioned(http.StatusOK, one),
		},
		{
			Method:    "PUT",
			Path:      path + "/{id}",
			Summary:   "Change a " + c.singular + ".",
			Body:      capabilitiesSchema(removable),
			Responses: versioned(http.StatusOK, one),
		},
		{
			Method:    "DELETE",
			Path:      path + "/{id}",
			Summary:   "Unregister a " + c.singular + ".",
			Responses: versioned(http.StatusNoContent, nil),
		},
	}, useOperations(path, c.plural, openapi.UUID())...)
}
