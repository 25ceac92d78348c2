package journal

import (
	"net/http"

	"berth/internal/api/openapi"
	"berth/internal/journal"
	"berth/internal/version"
)

// Description describes the API for its OpenAPI document.
func Description() openapi.API {
	return openapi.API{
		Name:        version.Journal.Name,
		Title:       "Journal API",
		Version:     version.Journal.Newest,
		Description: "Administrators list the entries of the OpenDaylight journal, and start full syncs, recoveries, audits and repairs. See docs/controller.md.",
		Error:       openapi.ErrorSchema(),
		Operations:  append(entryOperations(), runOperations()...),
	}
}

var (
	operationSchema = openapi.Enum(journal.Create, journal.Update, journal.Delete)
	stateSchema     = openapi.Enum(journal.Pending, journal.Processing, journal.Completed, journal.Failed)
)

func entryOperations() []openapi.Operation {
	one := openapi.Of[entry]().With("operation", operationSchema).With("state", stateSchema).Named("Entry")
	details := openapi.Object(openapi.Fields{
		"entry": openapi.Of[entryDetails]().With("operation", operationSchema).
			With("state", stateSchema).
			Named("EntryDetails"),
	})
	reason := openapi.InputOf[reasonBody]().With("reason", openapi.Text(journal.MaxReason)).Named("Reason")
	list := openapi.Object(openapi.Fields{"entries": openapi.Array(one)})
	changes := openapi.Schema{
		"type":     "array",
		"minItems": 1,
		"maxItems": maxChanges,
		"items": openapi.InputOf[change]("operation", "object_type", "object_id").
			With("operation", operationSchema).
			With("object_id", openapi.UUID()).
			With("data", openapi.Map(openapi.Any())),
	}
	act := func(path, summary string) openapi.Operation {
		return openapi.Operation{
			Method:    http.MethodPost,
			Path:      path,
			Summary:   summary,
			Responses: openapi.Returns(http.StatusOK, details),
		}
	}
	skip := act("/entries/{seq}/skip", "Skip a failed entry.")
	skip.Body, skip.BodyOptional = reason, true
	pause := openapi.Returns(http.StatusOK,
		openapi.Object(openapi.Fields{"pause": openapi.Of[pauseState]().Named("Pause")}))
	return []openapi.Operation{
		{
			Method:  http.MethodGet,
			Path:    "/entries",
			Summary: "List entries, newest first.",
			Query: []openapi.Parameter{
				{
					Name:   "state",
					Schema: stateSchema,
				}, {Name: "type", Schema: openapi.String()}, {Name: "object", Schema: openapi.String()},
				{
					Name:        "after",
					Description: "The number of the last entry on the previous page.",
					Schema:      openapi.Integer(),
				},
				{Name: "limit", Schema: openapi.Integer()},
				{Name: "order", Schema: openapi.Enum("asc", "desc")},
			},
			Responses: openapi.Returns(http.StatusOK, list),
		},
		{
			Method:    http.MethodPost,
			Path:      "/entries",
			Summary:   "Record changes of objects for which berth has no API.",
			Body:      openapi.InputOf[changesBody]("entries").With("entries", changes),
			Responses: openapi.Returns(http.StatusCreated, list),
		},
		{
			Method:    http.MethodGet,
			Path:      "/entries/{seq}",
			Summary:   "Show an entry and why it waits.",
			Responses: openapi.Returns(http.StatusOK, details),
		},
		act("/entries/{seq}/retry", "Retry a failed entry."), skip,
		{
			Method:  http.MethodGet,
			Path:    "/analysis",
			Summary: "Report how long the newest completed entries took, in seconds.",
			Query: []openapi.Parameter{
				{Name: "last", Schema: openapi.Between(1, 1_000_000)},
				{Name: "slowest", Schema: openapi.Between(1, maxLimit)},
			},
			Responses: openapi.Returns(
				http.StatusOK,
				openapi.Object(openapi.Fields{"analysis": analysisSchema()}),
			),
		},
		{
			Method:    http.MethodGet,
			Path:      "/pause",
			Summary:   "Show whether the journal is paused.",
			Responses: pause,
		},
		{
			Method:       http.MethodPost,
			Path:         "/pause",
			Summary:      "Pause the journal.",
			Body:         reason,
			BodyOptional: true,
			Responses:    pause,
		},
		{
			Method:       http.MethodPost,
			Path:         "/resume",
			Summary:      "Resume the journal.",
			Body:         reason,
			BodyOptional: true,
			Responses:    pause,
		},
	}
}

func analysisSchema() openapi.Schema {
	seconds := openapi.Number()
	return openapi.Object(openapi.Fields{
		"entries":  openapi.Integer(),
		"attempts": openapi.Number(),
		"average":  seconds,
		"p50":      seconds,
		"p90":      seconds,
		"p99":      seconds,
		"p999":     seconds,
		"slowest":  openapi.Array(openapi.Of[slowEntry]()),
	})
}

func runOperations() []openapi.Operation {
	kinds := openapi.Enum(journal.RunKinds...)
	one := openapi.Object(openapi.Fields{"run": openapi.Of[run]().With("kind", kinds).Named("Run")})
	list := openapi.Object(
		openapi.Fields{"runs": openapi.Array(openapi.Of[run]().With("kind", kinds).Named("Run"))},
	)
	findings := openapi.Object(openapi.Fields{
		"findings": openapi.Array(
			openapi.Of[finding]().With("attributes", openapi.Array(openapi.String()).Nullable()).
				Named("Finding"),
		),
	})
	return []openapi.Operation{
		{
			Method:  http.MethodGet,
			Path:    "/runs",
			Summary: "List full syncs, recoveries, audits and repairs, newest first.",
			Query: []openapi.Parameter{
				{
					Name:        "before",
					Description: "The number of the last run on the previous page.",
					Schema:      openapi.Integer(),
				},
				{
					Name:        "limit",
					Description: "The maximum number of runs; 50 if not given.",
					Schema:      openapi.Integer(),
				},
			},
			Responses: openapi.Returns(http.StatusOK, list),
		},
		{
			Method:  http.MethodPost,
			Path:    "/runs",
			Summary: "Start a run. If a run of the kind is active, the answer is this run.",
			Body: openapi.InputOf[runBody]("kind").With("kind", kinds).
				With("reason", openapi.Text(journal.MaxReason)).
				With("plan", openapi.Integer().Describe("The audit whose findings a repair repairs; required for a repair only.")),
			Responses: openapi.Returns(http.StatusAccepted, one),
		},
		{
			Method:    http.MethodGet,
			Path:      "/runs/{id}",
			Summary:   "Show a run.",
			Responses: openapi.Returns(http.StatusOK, one),
		},
		{
			Method:  http.MethodGet,
			Path:    "/runs/{id}/findings",
			Summary: "List the findings of an audit.",
			Query: []openapi.Parameter{
				{
					Name:        "after",
					Description: "TYPE/ID of the last finding on the previous page.",
					Schema:      openapi.String(),
				},
			},
			Responses: openapi.Returns(http.StatusOK, findings),
		},
	}
}
