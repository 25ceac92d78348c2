package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"berth/internal/api/agent"
	"berth/internal/api/blazar"
	"berth/internal/api/journal"
	"berth/internal/api/neutron"
	"berth/internal/api/openapi"
	"berth/internal/api/operator"
	"berth/internal/api/osapi"
	"berth/internal/api/placement"
)

// explainPath is the path, below the prefix of the operators' API, of the explanation of a query for
// allocation candidates.
const explainPath = "/candidates/explain"

// descriptions returns the descriptions of the APIs by the prefix of the API.
func descriptions() map[string]openapi.API {
	return map[string]openapi.API{
		"/placement":   placement.Description(),
		"/networking":  neutron.Description(),
		"/reservation": blazar.Description(),
		"/agent/v1":    agent.Description(),
		"/journal/v1":  journal.Description(),
		"/operator/v1": operator.Description(append(codecOperations(), placement.ExplainOperation(explainPath))...),
	}
}

func anyDocument(string) bool { return true }

// isOperatorDocument reports whether only the address of operators serves the API with the prefix, and
// therefore its document.
func isOperatorDocument(prefix string) bool {
	return slices.Contains(operatorPrefixes, strings.TrimPrefix(prefix, "/"))
}

// addDocuments adds the handlers of the OpenAPI documents of those APIs whose prefix the function `include`
// accepts. It returns an error if a document does not describe exactly the routes of its API.
func addDocuments(paths map[string]http.Handler, apis []*osapi.API, include func(prefix string) bool) error {
	if len(apis) == 0 {
		return nil
	}
	described := descriptions()
	var documents []openapi.Document
	for _, api := range apis {
		if !include(api.Prefix) || api.Prefix == "/"+consolePrefix { // the console has pages, not an API
			continue
		}
		description, ok := described[api.Prefix]
		if !ok {
			return fmt.Errorf("openapi: the API %s has no description", api.Prefix)
		}
		raw, err := openapi.Build(description, api)
		if err != nil {
			return err
		}
		documents = append(documents,
			openapi.Document{Name: description.Name, Title: description.Title, JSON: raw})
	}
	for path, h := range openapi.Handlers(documents) {
		paths[path] = getOnly(h)
	}
	return nil
}
