package agent

import (
	"net/http"

	"berth/internal/api/openapi"
	"berth/internal/version"
)

// Description describes the gateway for its OpenAPI document.
func Description() openapi.API {
	reported := openapi.Of[verdict]().With("result", openapi.Enum(done, waiting, gone, ignored).Describe(
		"done: the port waits for no other entity; waiting: the port waits for other entities; gone: the port does not exist; ignored: the report had no effect"),
	)
	status := openapi.String().
		Describe("new after the first heartbeat, alive after a later one, revived after a silence.")
	one := openapi.InputOf[report]("port", "entity").With("event", openapi.String().Describe(
		"Empty for a report that the entity has done its part; otherwise the name of another event, such as block."),
	)
	return openapi.API{
		Name:        version.Agent.Name,
		Title:       "Agent gateway",
		Version:     version.Agent.Newest,
		Description: "Agents send heartbeats and reports about ports. See docs/agents.md.",
		Error:       openapi.Of[failure](),
		Operations: []openapi.Operation{
			{
				Method:  http.MethodPost,
				Path:    "/state",
				Summary: "Send a heartbeat.",
				Body: openapi.InputOf[stateBody]("agent_type", "host").
					With("configurations", openapi.Map(openapi.Any())),
				Responses: openapi.Returns(http.StatusOK, openapi.Of[stateAnswer]().With("status", status)),
			},
			{
				Method:      http.MethodPost,
				Path:        "/reports",
				Summary:     "Report about ports.",
				Description: "All reports of a request are committed before the answer. A repeated request is harmless.",
				Body: openapi.Input(openapi.Fields{
					"reports": openapi.Schema{
						"type":     "array",
						"maxItems": maxReports,
						"items":    one.Named("Report"),
					},
				}, "reports"),
				Responses: openapi.Returns(
					http.StatusOK,
					openapi.Of[reportsAnswer]().With("verdicts", openapi.Array(reported.Named("Verdict"))),
				),
			},
		},
	}
}
