package blazar

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"berth/internal/api/openapi"
	"berth/internal/lease"
	"berth/internal/version"
)

// Description describes the API for its OpenAPI document.
func Description() openapi.API {
	operations := slices.Concat(versionOperations(), leaseOperations(), hostOperations(), addressOperations())
	for _, c := range resourceCollections {
		operations = append(operations, c.operations()...)
	}
	return openapi.API{
		Name:    version.Reservation.Name,
		Title:   "Blazar API",
		Version: version.Reservation.Newest,
		Description: "Leases with reservations of hosts, instances, floating IPs, network segments and devices. " +
			"A path that does not end in a variable also exists with the suffix .json.",
		Error: errorSchema(),
		Headers: []openapi.Parameter{
			{
				Name:        "OpenStack-API-Version",
				Description: "The microversion: reservation 1.0 or reservation latest.",
				Schema:      openapi.Enum("reservation 1.0", "reservation latest"),
			},
		},
		Operations: operations,
	}
}

// errorSchema returns the schema of the three formats of errors that fail writes.
func errorSchema() openapi.Schema {
	return openapi.OneOf(
		openapi.Of[errorBody](),
		openapi.Object(openapi.Fields{"error": openapi.Integer(), "error_message": openapi.String()}),
		openapi.Object(openapi.Fields{
			"error": openapi.Object(openapi.Fields{
				"code":    openapi.Integer(),
				"title":   openapi.String(),
				"message": openapi.String(),
			}),
		}),
	)
}

// versioned returns the responses of an operation whose answer names the microversion in a header.
func versioned(status int, body openapi.Schema) map[int]openapi.Response {
	return map[int]openapi.Response{
		status: {
			Body:    body,
			Headers: openapi.Fields{"OpenStack-API-Version": openapi.Const("reservation 1.0")},
		},
	}
}

// of returns the schema of an object with one field.
func of(name string, s openapi.Schema) openapi.Schema {
	return openapi.Object(openapi.Fields{name: s})
}

var (
	inputDate = openapi.Text(100).
			Describe("YYYY-MM-DD HH:MM in UTC, or a date in RFC 3339 with seconds; start_date and end_date may be now.")
	dateText  = openapi.Schema{"type": "string", "pattern": `^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$`}
	stampText = openapi.Schema{"type": "string", "pattern": `^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}$`}
)

func versionOperations() (all []openapi.Operation) {
	links := openapi.Array(openapi.Object(openapi.Fields{"rel": openapi.String(), "href": openapi.String()}))
	body := of("versions", openapi.Array(openapi.Object(openapi.Fields{
		"id":          openapi.String(),
		"status":      openapi.String(),
		"min_version": openapi.String(),
		"max_version": openapi.String(),
		"links":       links,
	})))
	for _, path := range []string{"/", "/versions"} {
		all = append(all, openapi.Operation{
			Method:    http.MethodGet,
			Path:      path,
			Summary:   "List the versions of the API.",
			Responses: openapi.Returns(http.StatusMultipleChoices, body),
		})
	}
	return all
}

// pageParameters returns the query parameters that select a page of a list. The parameter `id` is the schema
// of the items' IDs.
func pageParameters(id openapi.Schema) []openapi.Parameter {
	return []openapi.Parameter{
		{
			Name:        "limit",
			Description: "The maximum number of items. Without limit, the answer has all items.",
			Schema:      openapi.Schema{"type": "integer", "minimum": 1},
		},
		{Name: "marker", Description: "The ID of the last item on the previous page.", Schema: id},
	}
}

func leaseOperations() []openapi.Operation {
	one := of("lease", leaseSchema())
	reservations := openapi.Schema{"type": "array", "maxItems": maxObjects, "items": newReservationSchema()}
	create := openapi.Fields{
		"name":            openapi.String(),
		"start_date":      inputDate,
		"end_date":        inputDate,
		"before_end_date": inputDate,
		"reservations":    reservations,
		"events": openapi.Array(openapi.Map(openapi.Any())).
			Describe("The items have no effect, as in Blazar."),
	}
	plan := maps.Clone(create)
	plan["latest_start"] = inputDate.Describe(
		"The planned lease may start later than start_date, but not later than this date.",
	)
	change := openapi.Input(openapi.Fields{
		"name":            openapi.String(),
		"start_date":      inputDate,
		"end_date":        inputDate,
		"before_end_date": inputDate,
		"reservations": openapi.Schema{
			"type":     "array",
			"maxItems": maxObjects,
			"items":    changedReservationSchema(),
		},
	})
	deleted := versioned(http.StatusNoContent, nil)
	deleted[http.StatusAccepted] = openapi.Response{Body: one, Description: "The deletion continues."}
	planned := openapi.Of[planView]().With("start_date", dateText).With("end_date", dateText)
	return []openapi.Operation{
		{
			Method:    "GET",
			Path:      "/v1/leases",
			Summary:   "List leases.",
			Query:     pageParameters(openapi.UUID()),
			Responses: versioned(http.StatusOK, of("leases", openapi.Array(leaseSchema()))),
		},
		{
			Method:    "POST",
			Path:      "/v1/leases",
			Summary:   "Create a lease.",
			Body:      openapi.Input(create, "name", "start_date", "end_date"),
			Responses: versioned(http.StatusCreated, one),
		},
		{
			Method:    "GET",
			Path:      "/v1/leases/{id}",
			Summary:   "Show a lease and what it waits for.",
			Responses: versioned(http.StatusOK, one),
		},
		{
			Method:    "PUT",
			Path:      "/v1/leases/{id}",
			Summary:   "Change a lease.",
			Body:      change,
			Responses: versioned(http.StatusOK, one),
		},
		{
			Method:    "DELETE",
			Path:      "/v1/leases/{id}",
			Summary:   "Delete a lease.",
			Responses: deleted,
		},
		{
			Method:    "POST",
			Path:      "/v1/plans",
			Summary:   "Show the resources that a lease would get.",
			Body:      openapi.Input(plan, "name", "start_date", "end_date"),
			Responses: versioned(http.StatusOK, of("plan", planned)),
		},
	}
}

// leaseSchema returns the schema of a lease. Only the response with a single lease contains berth:why.
func leaseSchema() openapi.Schema {
	event := openapi.Of[eventView]().With("time", dateText).
		With("created_at", stampText).
		With("updated_at", stampText.Nullable())
	return openapi.Of[leaseView]().With("start_date", dateText).
		With("end_date", dateText).
		With("created_at", stampText).
		With("updated_at", stampText.Nullable()).
		With("reservations", openapi.Array(reservationSchema())).
		With("events", openapi.Array(event)).
		Named("Lease")
}

// reservationSchema returns the schema of a reservation of any type.
func reservationSchema() openapi.Schema {
	typed := func(s openapi.Schema, typ ...string) openapi.Schema {
		return s.With("resource_type", openapi.Enum(typ...)).
			With("created_at", stampText).
			With("updated_at", stampText.Nullable())
	}
	return openapi.OneOf(
		typed(openapi.Of[hostReservationView](), lease.PhysicalHost),
		typed(openapi.Of[instanceReservationView](), lease.VirtualInstance, lease.FlavorInstance),
		typed(openapi.Of[addressReservationView](), lease.FloatingIP),
		typed(openapi.Of[segmentReservationView](), lease.NetworkSegment),
		typed(openapi.Of[deviceReservationView](), lease.Device),
	).Named("Reservation")
}

// inputFields contains the schemas of the fields that readers reads.
func inputFields() openapi.Fields {
	number := openapi.AnyOf(openapi.Integer(), openapi.Schema{"type": "string", "pattern": "^[+-]?[0-9]+$"})
	fields := openapi.Fields{"network_id": openapi.UUID(),
		"affinity": openapi.AnyOf(openapi.Boolean(), openapi.String(), openapi.Null()),
		"required_floatingips": openapi.Schema{"type": "array", "maxItems": maxAddresses,
			"items": openapi.String().Describe("An IP address.")}}
	for _, name := range []string{"min", "max", "amount", "vcpus", "memory_mb", "disk_gb"} {
		fields[name] = number
	}
	for name := range readers {
		if _, ok := fields[name]; !ok {
			fields[name] = openapi.String()
		}
	}
	for _, name := range []string{"hypervisor_properties", "resource_properties", "network_properties"} {
		fields[name] = openapi.String().
			Describe(fmt.Sprintf(`Requirements: empty, or JSON such as ["and",[">=","$vcpus","4"],["=","$gpu","True"]]. `+
				"berth stores them without blanks between the tokens; the requirements of a reservation may then have at most %d bytes and %d conditions.",
				lease.MaxRequirementsSize, lease.MaxReservationRequirements))
	}
	fields["flavor_id"] = openapi.Name(255)
	return fields
}

// newReservationSchema returns the schema of a reservation in a request for a new lease: one form for each
// resource type.
func newReservationSchema() openapi.Schema {
	all := []openapi.Schema{}
	known := inputFields()
	for _, typ := range slices.Sorted(maps.Keys(forms)) {
		f := forms[typ]
		fields := openapi.Fields{"resource_type": openapi.Const(typ)}
		for _, name := range slices.Concat(f.must, f.may) {
			fields[name] = known[name]
		}
		all = append(all, openapi.Input(fields, append([]string{"resource_type"}, f.must...)...))
	}
	return openapi.OneOf(all...).Named("NewReservation")
}

func changedReservationSchema() openapi.Schema {
	fields := inputFields()
	fields["id"], fields["resource_type"] = openapi.UUID(), openapi.String()
	return openapi.Input(fields, "id").Named("ReservationChange")
}
