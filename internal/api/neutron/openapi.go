package neutron

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"berth/internal/api/openapi"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/portstore"
	"berth/internal/version"
)

// noStore stands for the store where only the description of a resource is used. It is not nil, because a
// resource names methods that portstore.Store has from networkstore.Store.
var noStore = &portstore.Store{}

// Description describes the API for its OpenAPI document. The attributes, filters and sort keys come from the
// tables of attributes.
func Description() openapi.API {
	return openapi.API{
		Name:    version.Networking.Name,
		Title:   "Networking API",
		Version: version.Networking.Newest,
		Description: "Networks, subnets, ports, trunks, security groups, quotas, tags and agents. " +
			"A path that does not end in a variable also exists with the suffix .json. Attributes that only administrators see may be missing.",
		Error: openapi.Of[failure](),
		Operations: slices.Concat(
			discoveryOperations(),
			networks(noStore).operations(networkSchemas()),
			networks(noStore).tagOperations(),
			subnets(noStore).operations(subnetSchemas()),
			subnets(noStore).tagOperations(),
			ports(noStore).operations(portSchemas()),
			ports(noStore).tagOperations(),
			trunks(noStore).operations(trunkSchemas()),
			trunks(noStore).tagOperations(),
			securityGroups(noStore).operations(securityGroupSchemas()),
			securityGroups(noStore).tagOperations(),
			securityRules(noStore).operations(securityRuleSchemas()),
			quotaOperations(),
			subportOperations(),
			availabilityOperations(),
			bindingOperations(),
			agentOperations(),
		),
	}
}

// of returns the schema of an object with one field.
func of(name string, s openapi.Schema) openapi.Schema {
	return openapi.Object(openapi.Fields{name: s})
}

// attributeSchemas contains the schema of each attribute of one kind of object, as responses have it.
type attributeSchemas struct {
	fields openapi.Fields
	input  openapi.Fields // schemas of attributes whose values in requests differ from those in responses
	single []string       // attributes that some responses lack, such as lists
	hidden []string       // attributes that no response has
}

// viewSchema returns the schema of an object in a response without the query parameter fields. With this
// parameter, the object has only the selected attributes.
func (res resource[N, C]) viewSchema(s attributeSchemas) openapi.Schema {
	fields, optional := openapi.Fields{}, slices.Clone(s.single)
	for _, a := range res.attributes {
		if slices.Contains(s.hidden, a.Name) {
			continue
		}
		field, ok := s.fields[a.Name]
		if !ok {
			panic("neutron: no schema for the attribute " + a.Name + " of a " + res.singular)
		}
		fields[a.Name] = field
		if a.AdminOnlyRead {
			optional = append(optional, a.Name)
			fields[a.Name] = field.Describe("Only administrators see the attribute.")
		}
	}
	return openapi.Object(fields, optional...).Named(componentName(res.singular))
}

// componentName returns the name of the schema of an object, such as SecurityGroup.
func componentName(singular string) (name string) {
	for word := range strings.SplitSeq(singular, "_") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}

// inputSchema returns the schema of an object in a request.
func (res resource[N, C]) inputSchema(s attributeSchemas, verb attribute.Operations) openapi.Schema {
	fields, required := openapi.Fields{}, []string{}
	for _, a := range res.attributes {
		if a.SettableOn&verb == 0 {
			continue
		}
		field, ok := s.input[a.Name]
		if !ok {
			field = s.fields[a.Name]
		}
		if a.AdminOnlyWrite {
			field = field.Describe("Only administrators may set the attribute.")
			if a.FalseAllowed {
				field = field.Describe("Only administrators may set another value than false.")
			}
		}
		fields[a.Name] = field
		if verb == attribute.OnCreate && a.SettableOn&attribute.Required != 0 {
			required = append(required, a.Name)
		}
	}
	return openapi.Input(fields, required...)
}

// listQuery describes the query of a list: filters, sorting, paging and the selection of attributes.
func (res resource[N, C]) listQuery() []openapi.Parameter {
	var filters []openapi.Parameter
	sortable := []string{}
	for _, a := range res.attributes {
		if a.FilterField != "" {
			filters = append(filters, openapi.Parameter{
				Name:        a.Name,
				Description: "Select objects whose attribute has one of the values.",
				Schema:      openapi.String(),
			})
		}
		if a.Sortable {
			sortable = append(sortable, a.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(res.filters)) {
		filters = append(filters, openapi.Parameter{Name: name, Schema: openapi.String()})
	}
	if res.tags.read != nil {
		for _, name := range slices.Sorted(maps.Keys(tagFilters)) {
			filters = append(filters, openapi.Parameter{
				Name:        name,
				Description: "A list of tags, separated by commas.",
				Schema:      openapi.String(),
			})
		}
	}
	return append(filters, pageQuery(openapi.Enum(sortable...))...)
}

// pageQuery describes listOptions.
func pageQuery(sortKey openapi.Schema) []openapi.Parameter {
	schemas := map[string]openapi.Schema{
		"sort_key":     sortKey,
		"sort_dir":     openapi.Enum("asc", "desc"),
		"limit":        {"type": "integer", "minimum": 0},
		"marker":       openapi.UUID(),
		"page_reverse": openapi.Boolean(),
		"fields":       openapi.String().Describe("The name of an attribute; may occur several times."),
	}
	var all []openapi.Parameter
	for _, name := range listOptions {
		all = append(all, openapi.Parameter{Name: name, Schema: schemas[name]})
	}
	return all
}

// fieldsQuery is the query of a request for a single object.
var fieldsQuery = []openapi.Parameter{
	{
		Name:        "fields",
		Description: "The name of an attribute that the response contains; may occur several times.",
		Schema:      openapi.String(),
	},
}

// ifMatch is the header that demands a revision.
var ifMatch = []openapi.Parameter{
	{
		Name:        "If-Match",
		Description: "revision_number=N: the request fails with 412 if the object has another revision.",
		Schema:      openapi.String(),
	},
}

// listSchema returns the schema of a list with links to the next and the previous page.
func listSchema(plural string, one openapi.Schema) openapi.Schema {
	link := openapi.Object(openapi.Fields{"rel": openapi.Enum("next", "previous"), "href": openapi.String()})
	return openapi.Object(
		openapi.Fields{plural: openapi.Array(one), plural + "_links": openapi.Array(link)},
		plural+"_links",
	)
}

// operations describes the routes of an object.
func (res resource[N, C]) operations(s attributeSchemas) []openapi.Operation {
	view, noun := res.viewSchema(s), res.singular
	created := res.inputSchema(s, attribute.OnCreate)
	create := openapi.OneOf(
		openapi.Input(openapi.Fields{noun: created}, noun),
		openapi.Input(openapi.Fields{
			noun + "s": {
				"type":     "array",
				"minItems": 1,
				"maxItems": maxBulk,
				"items":    created,
			},
		}, noun+"s"),
	)
	member := res.path() + "/{id}"
	return []openapi.Operation{
		{
			Method:    http.MethodGet,
			Path:      res.path(),
			Summary:   "List the " + noun + " objects that the caller sees.",
			Query:     res.listQuery(),
			Responses: openapi.Returns(http.StatusOK, listSchema(noun+"s", view)),
		},
		{
			Method:  http.MethodPost,
			Path:    res.path(),
			Summary: "Create one " + noun + " or several.",
			Body:    create,
			Responses: openapi.Returns(
				http.StatusCreated,
				openapi.OneOf(of(noun, view), of(noun+"s", openapi.Array(view))),
			),
		},
		{
			Method:    http.MethodGet,
			Path:      member,
			Summary:   "Show one " + noun + ".",
			Query:     fieldsQuery,
			Responses: openapi.Returns(http.StatusOK, of(noun, view)),
		},
		{
			Method:    http.MethodPut,
			Path:      member,
			Summary:   "Change one " + noun + ".",
			Headers:   ifMatch,
			Body:      openapi.Input(openapi.Fields{noun: res.inputSchema(s, attribute.OnUpdate)}, noun),
			Responses: openapi.Returns(http.StatusOK, of(noun, view)),
		},
		{
			Method:    http.MethodDelete,
			Path:      member,
			Summary:   "Delete one " + noun + ".",
			Headers:   ifMatch,
			Responses: openapi.Returns(http.StatusNoContent, nil),
		},
	}
}

// tagOperations describes the routes of an object's tags.
func (res resource[N, C]) tagOperations() []openapi.Operation {
	all, noun := res.path()+"/{id}/tags", res.singular
	tags := of("tags", openapi.Array(openapi.String()))
	body := openapi.Input(openapi.Fields{"tags": tagList()}, "tags")
	return []openapi.Operation{
		{
			Method:    http.MethodGet,
			Path:      all,
			Summary:   "List the tags of a " + noun + ".",
			Responses: openapi.Returns(http.StatusOK, tags),
		},
		{
			Method:    http.MethodPost,
			Path:      all,
			Summary:   "Add tags to a " + noun + ".",
			Headers:   ifMatch,
			Body:      body,
			Responses: openapi.Returns(http.StatusCreated, tags),
		},
		{
			Method:    http.MethodPut,
			Path:      all,
			Summary:   "Replace the tags of a " + noun + ".",
			Headers:   ifMatch,
			Body:      body,
			Responses: openapi.Returns(http.StatusOK, tags),
		},
		{
			Method:    http.MethodDelete,
			Path:      all,
			Summary:   "Remove all tags of a " + noun + ".",
			Headers:   ifMatch,
			Responses: openapi.Returns(http.StatusNoContent, nil),
		},
		{
			Method:    http.MethodGet,
			Path:      all + "/{tag}",
			Summary:   "Check that a " + noun + " has a tag.",
			Responses: openapi.Returns(http.StatusNoContent, nil),
		},
		{
			Method:    http.MethodPut,
			Path:      all + "/{tag}",
			Summary:   "Add a tag to a " + noun + ".",
			Headers:   ifMatch,
			Responses: openapi.Returns(http.StatusCreated, nil),
		},
		{
			Method:    http.MethodDelete,
			Path:      all + "/{tag}",
			Summary:   "Remove a tag from a " + noun + ".",
			Headers:   ifMatch,
			Responses: openapi.Returns(http.StatusNoContent, nil),
		},
	}
}

func tagList() openapi.Schema {
	return openapi.Schema{"type": "array", "items": openapi.Name(255), "uniqueItems": true}
}

func discoveryOperations() []openapi.Operation {
	links := openapi.Array(openapi.Object(openapi.Fields{"rel": openapi.String(), "href": openapi.String()}))
	versions := of("versions", openapi.Array(openapi.Object(
		openapi.Fields{"id": openapi.String(), "status": openapi.String(), "links": links},
	)))
	resources := of("resources", openapi.Array(openapi.Object(
		openapi.Fields{"name": openapi.String(), "collection": openapi.String(), "links": links},
	)))
	one := openapi.Object(openapi.Fields{
		"alias":       openapi.String(),
		"name":        openapi.String(),
		"description": openapi.String(),
		"updated":     openapi.String(),
		"links":       openapi.Array(openapi.Any()),
	}).Named("Extension")
	get := func(path, summary string, body openapi.Schema) openapi.Operation {
		return openapi.Operation{
			Method:    http.MethodGet,
			Path:      path,
			Summary:   summary,
			Responses: openapi.Returns(http.StatusOK, body),
		}
	}
	return []openapi.Operation{
		get("/", "List the versions of the API.", versions),
		get("/v2.0", "List the versions of the API.", versions),
		get("/v2.0/", "List the resources of the API.", resources),
		get("/v2.0/extensions", "List the extensions of the API.", of("extensions", openapi.Array(one))),
		get("/v2.0/extensions/{alias}", "Show an extension of the API.", of("extension", one)),
	}
}

func quotaOperations() []openapi.Operation {
	limit := openapi.Between(network.Unlimited, 1<<31-1)
	limits, details, body := openapi.Fields{}, openapi.Fields{}, openapi.Fields{
		"project_id":  openapi.Text(255),
		"tenant_id":   openapi.Text(255),
		"check_limit": openapi.Boolean(),
		"force":       openapi.Boolean(),
	}
	for _, name := range network.QuotaResources() {
		limits[name], body[name] = limit, limit
		details[name] = openapi.Object(
			openapi.Fields{"limit": limit, "used": openapi.Integer(), "reserved": openapi.Integer()},
		)
	}
	listed := maps.Clone(limits)
	listed["project_id"], listed["tenant_id"] = openapi.String(), openapi.String()
	quota := of("quota", openapi.Object(limits))
	const path = "/v2.0/quotas/{project}"
	return []openapi.Operation{
		{
			Method:    http.MethodGet,
			Path:      "/v2.0/quotas",
			Summary:   "List the quotas that differ from the default.",
			Responses: openapi.Returns(http.StatusOK, of("quotas", openapi.Array(openapi.Object(listed)))),
		},
		{
			Method:    http.MethodGet,
			Path:      "/v2.0/quotas/tenant",
			Summary:   "Show the project of the caller.",
			Responses: openapi.Returns(http.StatusOK, of("tenant", of("tenant_id", openapi.String()))),
		},
		{
			Method:    http.MethodGet,
			Path:      "/v2.0/quotas/project",
			Summary:   "Show the project of the caller.",
			Responses: openapi.Returns(http.StatusOK, of("project", of("project_id", openapi.String()))),
		},
		{
			Method:    http.MethodGet,
			Path:      path,
			Summary:   "Show the quota of a project.",
			Query:     fieldsQuery,
			Responses: openapi.Returns(http.StatusOK, quota),
		},
		{
			Method:    http.MethodPut,
			Path:      path,
			Summary:   "Change the quota of a project.",
			Body:      openapi.Input(openapi.Fields{"quota": openapi.Input(body)}, "quota"),
			Responses: openapi.Returns(http.StatusOK, quota),
		},
		{
			Method:    http.MethodDelete,
			Path:      path,
			Summary:   "Reset the quota of a project to the default.",
			Responses: openapi.Returns(http.StatusNoContent, nil),
		},
		{
			Method:    http.MethodGet,
			Path:      path + "/default",
			Summary:   "Show the default quota.",
			Responses: openapi.Returns(http.StatusOK, quota),
		},
		{
			Method:    http.MethodGet,
			Path:      path + "/details",
			Summary:   "Show the quota of a project with its usage.",
			Responses: openapi.Returns(http.StatusOK, of("quota", openapi.Object(details))),
		},
	}
}
