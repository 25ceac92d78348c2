package placement

import (
	"fmt"
	"net/http"
	"slices"

	"berth/internal/api/openapi"
	"berth/internal/version"
)

// Description describes the API at the newest microversion for its OpenAPI document.
func Description() openapi.API {
	operations := []openapi.Operation{
		{
			Method:  http.MethodGet,
			Path:    "/",
			Summary: "List the versions of the API.",
			Responses: map[int]openapi.Response{
				http.StatusOK: {Body: versionsSchema(), Headers: versionHeaders()},
			},
		},
	}
	described := descriptions()
	for _, e := range endpoints {
		d := described[e.method+" "+e.path]
		o := openapi.Operation{
			Method:    e.method,
			Path:      e.path,
			Summary:   d.summary,
			Query:     d.query,
			Responses: map[int]openapi.Response{},
		}
		if e.from > 0 {
			o.Since = fmt.Sprintf("1.%d", e.from)
		}
		if d.body != nil {
			o.Body = d.body.openAPI()
		}
		o.Description = "Policy rule: " + "placement:" + e.rule + "."
		for status, body := range d.responses {
			r := openapi.Response{Body: body, Headers: versionHeaders()}
			for _, name := range d.headers {
				r.Headers[name] = openapi.String()
			}
			o.Responses[status] = r
		}
		operations = append(operations, o)
	}
	return openapi.API{
		Name:    version.Placement.Name,
		Title:   "Placement API",
		Version: version.Placement.Newest,
		Description: fmt.Sprintf(
			"The schemas are those of microversion %s; a request selects a microversion with the header OpenStack-API-Version, and gets 1.0 without this header. "+
				"Each operation says from which microversion on it exists.",
			version.Placement.Newest,
		),
		Error:      errorSchema(),
		ErrorTexts: []string{"text/html", "text/plain"},
		Headers: []openapi.Parameter{{Name: "OpenStack-API-Version", Description: "The microversion.",
			Schema: openapi.Schema{"type": "string", "pattern": `^placement (latest|1\.[0-9]+)$`}}},
		Operations: operations,
	}
}

// versionHeaders returns the headers of every response.
func versionHeaders() openapi.Fields {
	return openapi.Fields{
		"OpenStack-API-Version": openapi.Schema{"type": "string", "pattern": `^placement 1\.[0-9]+$`},
	}
}

// openAPI converts a schema to the schema of the OpenAPI document.
func (s *schema) openAPI() openapi.Schema {
	out := openapi.Schema{"type": s.kind}
	if s.nullable {
		out["type"] = []string{s.kind, "null"}
	}
	put := func(key string, set bool, value any) {
		if set {
			out[key] = value
		}
	}
	switch s.kind {
	case "object":
		s.addObject(out)
	case "array":
		out["items"], out["maxItems"] = s.items.openAPI(), maxElements
		put("minItems", s.minItems > 0, s.minItems)
		put("uniqueItems", s.unique, true)
	case "string":
		put("minLength", s.minLength > 0, s.minLength)
		put("maxLength", s.maxLength > 0, s.maxLength)
		if s.pattern != nil {
			out["pattern"] = s.pattern.String()
		}
		put("description", s.uuid, "A UUID, with or without hyphens.")
	default:
		if s.minimum != nil {
			out["minimum"] = *s.minimum
		}
		if s.maximum != nil {
			out["maximum"] = *s.maximum
		}
	}
	return out
}

func (s *schema) addObject(out openapi.Schema) {
	if len(s.required) > 0 {
		out["required"] = slices.Sorted(slices.Values(s.required))
	}
	if s.minKeys > 0 {
		out["minProperties"] = s.minKeys
	}
	if len(s.fields) > 0 {
		fields := openapi.Fields{}
		for name, field := range s.fields {
			fields[name] = field.openAPI()
		}
		out["properties"] = fields
	}
	switch {
	case s.keys != nil:
		out["patternProperties"], out["additionalProperties"] = openapi.Fields{
			s.keys.String(): s.each.openAPI(),
		}, s.open
	case s.each != nil:
		out["additionalProperties"] = s.each.openAPI()
	default:
		out["additionalProperties"] = s.open
	}
	if s.each != nil {
		out["maxProperties"] = maxElements
	}
}

func versionsSchema() openapi.Schema {
	return openapi.Object(openapi.Fields{
		"versions": openapi.Array(openapi.Object(openapi.Fields{
			"id":          openapi.String(),
			"min_version": openapi.String(),
			"max_version": openapi.String(),
			"status":      openapi.String(),
			"links":       openapi.Array(openapi.Of[link]()),
		})),
	})
}

// errorSchema returns the schema of the errors that fail writes for clients that accept JSON.
func errorSchema() openapi.Schema {
	one := openapi.Object(openapi.Fields{
		"status":      openapi.Integer(),
		"title":       openapi.String(),
		"detail":      openapi.String(),
		"request_id":  openapi.String(),
		"code":        openapi.String().Describe("From microversion 1.23 on."),
		"min_version": openapi.String(),
		"max_version": openapi.String(),
	}, "code", "min_version", "max_version")
	unauthenticated := openapi.Object(
		openapi.Fields{"message": openapi.String(), "code": openapi.String(), "title": openapi.String()},
	)
	return openapi.OneOf(openapi.Object(openapi.Fields{"errors": openapi.Array(one)}), unauthenticated)
}
