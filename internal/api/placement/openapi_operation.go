package placement

import (
	"maps"
	"net/http"

	"berth/internal/api/openapi"
)

// description describes an endpoint in addition to the table endpoints, at the newest microversion.
type description struct {
	summary   string
	query     []openapi.Parameter
	body      *schema
	responses map[int]openapi.Schema // by status; nil: no body
	headers   []string               // headers of the responses
}

// modified are the headers of responses that say when their object has changed.
var modified = []string{"Last-Modified", "Cache-Control"}

func returns(status int, body openapi.Schema) map[int]openapi.Schema {
	return map[int]openapi.Schema{status: body}
}

// empty are the responses of an operation that answers without a body.
func empty() map[int]openapi.Schema { return returns(http.StatusNoContent, nil) }

// descriptions returns the description of each endpoint by its method and path.
func descriptions() map[string]description {
	all := providerDescriptions()
	maps.Copy(all, inventoryDescriptions())
	maps.Copy(all, allocationDescriptions())
	maps.Copy(all, nameDescriptions())
	return all
}

// queryOf returns the query parameters of a schema.
func queryOf(s *schema) (all []openapi.Parameter) {
	for _, name := range sortedFields(s) {
		required := false
		for _, r := range s.required {
			required = required || r == name
		}
		all = append(all, openapi.Parameter{Name: name, Schema: s.fields[name].openAPI(), Required: required})
	}
	return all
}

func sortedFields(s *schema) []string {
	names := map[string]any{}
	for name := range s.fields {
		names[name] = nil
	}
	return sorted(names)
}

func providerDescriptions() map[string]description {
	one := openapi.Of[provider]().With("parent_provider_uuid", openapi.UUID().Nullable()).
		Named("ResourceProvider")
	list := openapi.Object(openapi.Fields{"resource_providers": openapi.Array(one)})
	generation := openapi.Integer()
	aggregates := openapi.Object(openapi.Fields{
		"aggregates":                   openapi.Array(openapi.String()),
		"resource_provider_generation": generation,
	})
	traits := openapi.Object(
		openapi.Fields{"traits": openapi.Array(openapi.String()), "resource_provider_generation": generation},
	)
	c := &call{v: newest}
	return map[string]description{
		"GET /resource_providers": {
			"List resource providers.",
			queryOf(c.filterSchema()),
			nil,
			returns(http.StatusOK, list),
			modified,
		},
		"POST /resource_providers": {
			"Create a resource provider.",
			nil,
			providerSchema(newest, map[string]*schema{"uuid": someUUID}),
			returns(http.StatusOK, one),
			append([]string{"Location"}, modified...),
		},
		"GET /resource_providers/{uuid}": {
			"Show a resource provider.",
			nil,
			nil,
			returns(http.StatusOK, one),
			modified,
		},
		"PUT /resource_providers/{uuid}": {
			"Rename or move a resource provider.",
			nil,
			providerSchema(newest, map[string]*schema{}),
			returns(http.StatusOK, one),
			modified,
		},
		"DELETE /resource_providers/{uuid}": {"Delete a resource provider.", nil, nil, empty(), nil},
		"GET /resource_providers/{uuid}/aggregates": {
			"List the aggregates of a provider.",
			nil,
			nil,
			returns(http.StatusOK, aggregates),
			modified,
		},
		"PUT /resource_providers/{uuid}/aggregates": {
			"Replace the aggregates of a provider.",
			nil,
			aggregatesSchema(newest),
			returns(http.StatusOK, aggregates),
			modified,
		},
		"GET /resource_providers/{uuid}/traits": {
			"List the traits of a provider.",
			nil,
			nil,
			returns(http.StatusOK, traits),
			modified,
		},
		"PUT /resource_providers/{uuid}/traits": {
			"Replace the traits of a provider.",
			nil,
			providerTraitsSchema(),
			returns(http.StatusOK, traits),
			modified,
		},
		"DELETE /resource_providers/{uuid}/traits": {
			"Remove all traits of a provider.",
			nil,
			nil,
			empty(),
			nil,
		},
		"GET /resource_providers/{uuid}/usages": {
			"Show the usage of a provider.",
			nil,
			nil,
			returns(http.StatusOK, usageOf()),
			modified,
		},
		"GET /resource_providers/{uuid}/allocations": {
			"List the allocations from a provider.",
			nil,
			nil,
			returns(http.StatusOK, providerAllocations()),
			modified,
		},
	}
}

// amountsSchema is the schema of amounts by resource class.
func amountsSchema() openapi.Schema { return openapi.Map(openapi.Integer()) }

func usageOf() openapi.Schema {
	return openapi.Object(
		openapi.Fields{"resource_provider_generation": openapi.Integer(), "usages": amountsSchema()},
	)
}

func providerAllocations() openapi.Schema {
	return openapi.Object(openapi.Fields{"resource_provider_generation": openapi.Integer(),
		"allocations": openapi.Map(openapi.Of[consumerShare]())})
}

func inventoryDescriptions() map[string]description {
	one := openapi.Of[inventoryView]().Named("Inventory")
	all := openapi.Object(
		openapi.Fields{"resource_provider_generation": openapi.Integer(), "inventories": openapi.Map(one)},
	)
	const path = "/resource_providers/{uuid}/inventories"
	return map[string]description{
		"GET " + path: {
			"List the inventories of a provider.",
			nil,
			nil,
			returns(http.StatusOK, all),
			modified,
		},
		"POST " + path: {
			"Create an inventory.",
			nil,
			newInventorySchema(),
			returns(http.StatusCreated, one),
			append([]string{"Location"}, modified...),
		},
		"PUT " + path: {
			"Replace the inventories of a provider.",
			nil,
			inventoriesSchema(),
			returns(http.StatusOK, all),
			modified,
		},
		"DELETE " + path: {"Delete the inventories of a provider.", nil, nil, empty(), nil},
		"GET " + path + "/{class}": {
			"Show the inventory of a resource class.",
			nil,
			nil,
			returns(http.StatusOK, one),
			modified,
		},
		"PUT " + path + "/{class}": {
			"Change the inventory of a resource class.",
			nil,
			changedInventorySchema(),
			returns(http.StatusOK, one),
			modified,
		},
		"DELETE " + path + "/{class}": {"Delete the inventory of a resource class.", nil, nil, empty(), nil},
	}
}

func allocationDescriptions() map[string]description {
	share := openapi.Object(openapi.Fields{"resources": amountsSchema(), "generation": openapi.Integer()})
	shown := openapi.Object(openapi.Fields{
		"allocations":         openapi.Map(share),
		"project_id":          openapi.String(),
		"user_id":             openapi.String(),
		"consumer_generation": openapi.Integer(),
		"consumer_type":       openapi.String(),
	}, "project_id", "user_id", "consumer_generation", "consumer_type")
	usages := openapi.Object(openapi.Fields{
		"usages": openapi.Map(amountsSchema()).
			Describe("By consumer type: amounts by resource class, and consumer_count."),
	})
	return map[string]description{
		"POST /allocations": {
			"Replace the allocations of several consumers.",
			nil,
			allocationsSchema(newest),
			empty(),
			nil,
		},
		"GET /allocations/{consumer}": {
			"Show the allocations of a consumer.",
			nil,
			nil,
			returns(http.StatusOK, shown),
			modified,
		},
		"PUT /allocations/{consumer}": {
			"Replace the allocations of a consumer.",
			nil,
			allocationSchema(newest, false),
			empty(),
			nil,
		},
		"DELETE /allocations/{consumer}": {"Delete the allocations of a consumer.", nil, nil, empty(), nil},
		"GET /allocation_candidates": {
			"List allocation candidates.",
			CandidateQuery(),
			nil,
			returns(http.StatusOK, candidatesSchema()),
			modified,
		},
		"GET /usages": {
			"Show the usage of a project.",
			queryOf(usageSchema(newest)),
			nil,
			returns(http.StatusOK, usages),
			modified,
		},
		"POST /reshaper": {
			"Replace inventories and allocations in one step.",
			nil,
			reshapeSchema(newest),
			empty(),
			nil,
		},
	}
}

// CandidateQuery describes the query of GET /allocation_candidates.
func CandidateQuery() (all []openapi.Parameter) {
	for _, p := range groupParameters {
		all = append(all, openapi.Parameter{Name: p.name, Schema: openapi.String(),
			Description: "The parameter may have a suffix of 1 to 64 letters, digits, _ and -: parameters with the same suffix are a group, which one provider serves."})
	}
	return append(
		all,
		openapi.Parameter{Name: "limit", Schema: limitForm.openAPI()},
		openapi.Parameter{Name: "group_policy", Schema: openapi.Enum("none", "isolate")},
		openapi.Parameter{
			Name:   "root_required",
			Schema: openapi.String(),
		},
		openapi.Parameter{Name: "same_subtree", Schema: openapi.String()},
	)
}

func candidatesSchema() openapi.Schema {
	request := openapi.Object(openapi.Fields{
		"allocations": openapi.Map(openapi.Object(openapi.Fields{"resources": amountsSchema()})),
		"mappings":    openapi.Map(openapi.Array(openapi.UUID())),
	})
	summary := openapi.Object(openapi.Fields{
		"traits":               openapi.Array(openapi.String()),
		"parent_provider_uuid": openapi.UUID().Nullable(),
		"root_provider_uuid":   openapi.UUID(),
		"resources": openapi.Map(
			openapi.Object(openapi.Fields{"capacity": openapi.Integer(), "used": openapi.Integer()}),
		),
	})
	return openapi.Object(openapi.Fields{
		"allocation_requests": openapi.Array(request),
		"provider_summaries":  openapi.Map(summary),
	})
}

// nameDescriptions describes the endpoints of resource classes and traits.
func nameDescriptions() map[string]description {
	one := openapi.Of[class]().Named("ResourceClass")
	ensured := map[int]openapi.Schema{http.StatusCreated: nil, http.StatusNoContent: nil}
	traits := openapi.Object(openapi.Fields{"traits": openapi.Array(openapi.String())})
	return map[string]description{
		"GET /resource_classes": {
			"List resource classes.",
			nil,
			nil,
			returns(http.StatusOK, openapi.Object(openapi.Fields{"resource_classes": openapi.Array(one)})),
			modified,
		},
		"POST /resource_classes": {
			"Create a resource class.",
			nil,
			classForm,
			returns(http.StatusCreated, nil),
			[]string{"Location"},
		},
		"GET /resource_classes/{name}": {
			"Show a resource class.",
			nil,
			nil,
			returns(http.StatusOK, one),
			modified,
		},
		"PUT /resource_classes/{name}": {
			"Create a resource class if it does not exist.",
			nil,
			nil,
			ensured,
			[]string{"Location"},
		},
		"DELETE /resource_classes/{name}": {"Delete a resource class.", nil, nil, empty(), nil},
		"GET /traits": {
			"List traits.",
			queryOf(traitForm),
			nil,
			returns(http.StatusOK, traits),
			modified,
		},
		"GET /traits/{name}": {"Check that a trait exists.", nil, nil, empty(), modified},
		"PUT /traits/{name}": {
			"Create a trait if it does not exist.",
			nil,
			nil,
			ensured,
			append([]string{"Location"}, modified...),
		},
		"DELETE /traits/{name}": {"Delete a trait.", nil, nil, empty(), nil},
	}
}

// ExplainOperation describes the operation whose handler ExplainCandidates returns.
func ExplainOperation(path string) openapi.Operation {
	return openapi.Operation{
		Method:    http.MethodGet,
		Path:      path,
		Summary:   "Explain a query for allocation candidates.",
		Query:     CandidateQuery(),
		Responses: openapi.Returns(http.StatusOK, openapi.Of[explanationView]()),
	}
}
