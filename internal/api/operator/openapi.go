package operator

import (
	"net/http"

	"berth/internal/api/openapi"
	"berth/internal/version"
)

// Description describes the API for its OpenAPI document. The parameter `more` describes the routes that the
// server adds.
func Description(more ...openapi.Operation) openapi.API {
	operations := append(stateOperations(), blockOperations()...)
	operations = append(
		operations,
		credentialOperations("/agent-tokens", "agent_tokens", "token", openapi.InputOf[tokenBody]("host"))...)
	operations = append(
		operations,
		credentialOperations(
			"/agent-keys", "agent_keys", "public key", openapi.InputOf[keyBody]("host", "public_key"),
		)...)
	operations = append(operations, virtualHostOperations()...)
	operations = append(operations, auditOperations()...)
	return openapi.API{
		Name:        version.Operator.Name,
		Title:       "Operator API",
		Version:     version.Operator.Newest,
		Description: "Administrators read histories of generations, comparisons, what waits, overdue objects, notes, policy rules and the audit log, and handle blocks and the credentials of agents.",
		Error:       openapi.ErrorSchema(),
		Operations:  append(operations, more...),
	}
}

var limitQuery = openapi.Parameter{
	Name:        "limit",
	Description: "The maximum number of items.",
	Schema:      openapi.Integer(),
}

// of returns the schema of an object with one field.
func of(name string, s openapi.Schema) openapi.Schema {
	return openapi.Object(openapi.Fields{name: s})
}

func stateOperations() []openapi.Operation {
	history := func(path, summary string) openapi.Operation {
		return openapi.Operation{
			Method:  http.MethodGet,
			Path:    path,
			Summary: summary,
			Query: []openapi.Parameter{
				{
					Name:        "before",
					Description: "The ID of the last change on the previous page.",
					Schema:      openapi.Integer(),
				},
				limitQuery,
			},
			Responses: openapi.Returns(
				http.StatusOK,
				of("changes", openapi.Array(openapi.Of[change]().Named("Change"))),
			),
		}
	}
	noteSchema := openapi.Of[note]().With("state", openapi.Enum(stateWaiting, stateSetAside)).Named("Note")
	return []openapi.Operation{
		history("/consumers/{uuid}/history", "List the changes of a consumer's generation, newest first."),
		history("/providers/{uuid}/history", "List the changes of a provider's generation, newest first."),
		{
			Method:  http.MethodPost,
			Path:    "/consumers/migrate",
			Summary: "Give consumers without a project and a user the configured ones.",
			Body:    openapi.InputOf[migrationBody]().With("limit", openapi.Between(1, maxBatch)),
			Responses: openapi.Returns(
				http.StatusOK,
				openapi.Object(openapi.Fields{"migrated": openapi.Integer(), "remaining": openapi.Integer()}),
			),
		},
		{
			Method:  http.MethodGet,
			Path:    "/projections",
			Summary: "Show the last comparison of each projection with the rows, the Temporal namespace to which the database is bound, and when each part of the periodic maintenance was last completed.",
			Responses: openapi.Returns(
				http.StatusOK,
				openapi.Of[projectionList]().
					With("projections", openapi.Array(openapi.Of[projection]().Named("Projection"))).
					With("maintenance", openapi.Array(openapi.Of[maintenancePart]().Named("MaintenancePart"))),
			),
		},
		{
			Method:  http.MethodGet,
			Path:    "/overdue",
			Summary: "Show what should have made progress by now, by kind.",
			Responses: openapi.Returns(
				http.StatusOK,
				of("overdue", openapi.Array(openapi.Of[overdueKind]().Named("OverdueKind"))),
			),
		},
		{
			Method:  http.MethodGet,
			Path:    "/waiting",
			Summary: "Show what waits, grouped by the party for which it waits; the longest wait comes first.",
			Responses: openapi.Returns(
				http.StatusOK,
				openapi.Object(openapi.Fields{
					"waiting": openapi.Array(openapi.Of[waitingGroup]().Named("WaitingGroup")),
					"cut":     openapi.Boolean().Describe("More parties wait than the answer contains."),
				}),
			),
		},
		{
			Method:  http.MethodGet,
			Path:    "/waiting/{party}",
			Summary: "List the objects that wait for a party.",
			Query: []openapi.Parameter{
				{Name: "name", Description: "The name of the party.", Schema: openapi.String()},
				{Name: "host", Description: "The host of the party.", Schema: openapi.String()},
				{
					Name:        "after",
					Description: "The value of `next` on the previous page.",
					Schema:      openapi.UUID(),
				},
				limitQuery,
			},
			Responses: openapi.Returns(
				http.StatusOK,
				openapi.Of[waitingPage]().With("objects", openapi.Array(openapi.Of[waitingObject]().Named("WaitingObject"))),
			),
		},
		{
			Method:  http.MethodGet,
			Path:    "/notes",
			Summary: "List notes that are not delivered to Temporal, oldest first.",
			Query: []openapi.Parameter{
				{Name: "state", Schema: openapi.Enum(stateWaiting, stateSetAside)},
				limitQuery,
			},
			Responses: openapi.Returns(
				http.StatusOK,
				openapi.Object(openapi.Fields{"notes": openapi.Array(noteSchema),
					"set_aside": openapi.Integer()}),
			),
		},
		{
			Method:  http.MethodPost,
			Path:    "/notes/retry",
			Summary: "Deliver notes that are set aside again.",
			Body: openapi.InputOf[retryBody]().With("workflow_ids", openapi.Schema{
				"type":        "array",
				"items":       openapi.String(),
				"maxItems":    maxRetried,
				"description": "If the list is missing or empty, all notes that are set aside.",
			}),
			Responses: openapi.Returns(http.StatusOK, of("retried", openapi.Integer())),
		},
		{
			Method:  http.MethodGet,
			Path:    "/policy/rules",
			Summary: "List the policy rules in force.",
			Responses: openapi.Returns(
				http.StatusOK,
				of("rules", openapi.Array(openapi.Of[policyRule]().Named("PolicyRule"))),
			),
		},
		{
			Method:  http.MethodPost,
			Path:    "/policy/check",
			Summary: "Decide a policy rule for a caller, and explain the decision.",
			Body: openapi.InputOf[policyQuestion]("api", "rule").
				With("target", openapi.Map(openapi.Any())),
			Responses: openapi.Returns(http.StatusOK, policyAnswerSchema()),
		},
	}
}

// policyAnswerSchema returns the schema of policyAnswer. An explanation contains the explanations of its
// parts.
func policyAnswerSchema() openapi.Schema {
	explanation := openapi.Object(openapi.Fields{
		"check":   openapi.String(),
		"allowed": openapi.Boolean(),
		"reason":  openapi.String(),
		"parts":   openapi.Array(openapi.Schema{"$ref": "#/components/schemas/Explanation"}),
	}, "reason", "parts").Named("Explanation")
	return openapi.Object(openapi.Fields{
		"api":         openapi.String(),
		"rule":        openapi.String(),
		"allowed":     openapi.Boolean(),
		"caller":      openapi.Of[policyCaller](),
		"explanation": explanation,
	})
}

func blockOperations() []openapi.Operation {
	const path = "/blocks/{type}/{id}"
	answer := openapi.Of[blocksAnswer]().With("blocks", openapi.Array(openapi.Of[block]().Named("Block")))
	return []openapi.Operation{
		{
			Method:    http.MethodGet,
			Path:      path,
			Summary:   "List the provisioning blocks of a port or trunk.",
			Responses: openapi.Returns(http.StatusOK, answer),
		},
		{
			Method:  http.MethodPut,
			Path:    path + "/{entity}",
			Summary: "Add a block of an entity.",
			Body:    openapi.InputOf[blockBody](),
			Responses: map[int]openapi.Response{
				http.StatusCreated: {Body: answer},
				http.StatusOK:      {Body: answer, Description: "The object already waits for the entity."},
			},
		},
		{
			Method:    http.MethodDelete,
			Path:      path + "/{entity}",
			Summary:   "Remove the block of an entity.",
			Responses: openapi.Returns(http.StatusNoContent, nil),
		},
		{
			Method:    http.MethodPost,
			Path:      path + "/{entity}/complete",
			Summary:   "Record that an entity has done its part.",
			Body:      openapi.InputOf[completionBody](),
			Responses: openapi.Returns(http.StatusOK, answer),
		},
	}
}

func hostParameter() []openapi.Parameter {
	return []openapi.Parameter{
		{Name: "host", Description: "Select the items of one host.", Schema: openapi.String()},
	}
}

func credentialOperations(path, plural, noun string, body openapi.Schema) []openapi.Operation {
	one := openapi.Of[agentCredential]().With("last_used_on", openapi.Schema{"type": "string", "format": "date"}).
		With("token", openapi.String().Describe("Only the answer to the request that creates a token contains the token."))
	created := openapi.Response{Body: one}
	if noun == "token" {
		created.Headers = openapi.Fields{"Cache-Control": openapi.String()}
	}
	return []openapi.Operation{
		{
			Method:    http.MethodGet,
			Path:      path,
			Summary:   "List the " + noun + "s of agents.",
			Query:     hostParameter(),
			Responses: openapi.Returns(http.StatusOK, of(plural, openapi.Array(one))),
		},
		{
			Method:    http.MethodPost,
			Path:      path,
			Summary:   "Create a " + noun + " of the agents of a host.",
			Body:      body.With("host", openapi.Name(maxHost)),
			Responses: map[int]openapi.Response{http.StatusCreated: created},
		},
		{
			Method:    http.MethodDelete,
			Path:      path + "/{id}",
			Summary:   "Revoke a " + noun + ".",
			Responses: openapi.Returns(http.StatusNoContent, nil),
		},
	}
}

func virtualHostOperations() []openapi.Operation {
	const path = "/agent-vhosts"
	one := openapi.Of[agentVirtualHost]().With("agent_types", openapi.Array(openapi.String()).Nullable()).
		Named("AgentVirtualHost")
	body := openapi.InputOf[virtualHostBody]("host").With("host", openapi.Name(maxHost)).
		With("agent_types", openapi.Schema{"type": "array", "items": openapi.Name(maxHost), "maxItems": maxAgentTypes})
	return []openapi.Operation{
		{
			Method:    http.MethodGet,
			Path:      path,
			Summary:   "List the virtual hosts of RabbitMQ that agents use.",
			Query:     hostParameter(),
			Responses: openapi.Returns(http.StatusOK, of("agent_vhosts", openapi.Array(one))),
		},
		{
			Method:    http.MethodPost,
			Path:      path,
			Summary:   "Register the virtual host of a host.",
			Body:      body,
			Responses: openapi.Returns(http.StatusCreated, one),
		},
		{
			Method:    http.MethodDelete,
			Path:      path + "/{id}",
			Summary:   "Remove the registration of a virtual host.",
			Responses: openapi.Returns(http.StatusNoContent, nil),
		},
	}
}
