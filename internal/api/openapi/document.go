package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"berth/internal/api/osapi"
)

// componentKey marks a schema that the document contains below components/schemas. The key does not occur in
// the document.
const componentKey = "x-component"

// API describes an API.
type API struct {
	Name        string // name of the document, such as networking
	Title       string
	Version     string
	Description string
	Error       Schema      // body of every error
	ErrorTexts  []string    // media types in which a client can also get an error as text
	Headers     []Parameter // request headers of every operation, in addition to X-Auth-Token
	Operations  []Operation
}

// Operation describes one HTTP method of one path.
type Operation struct {
	Method, Path string // as in the route of the API
	Summary      string
	Description  string
	Since        string // microversion in which the operation first exists; "": it always exists
	Query        []Parameter
	Headers      []Parameter // request headers of this operation
	Body         Schema      // nil: the operation reads no body
	BodyOptional bool
	Responses    map[int]Response // by status, except errors
}

// Parameter describes a query parameter or a request header.
type Parameter struct {
	Name, Description string
	Schema            Schema
	Required          bool
}

// Response describes a response.
type Response struct {
	Description string
	Body        Schema // nil: the response has no body
	Lines       Schema // instead of Body: each line of a body with the media type application/jsonl
	Headers     Fields // headers that the response always has, in addition to X-Openstack-Request-Id
}

// Returns returns the responses of an operation that has one status for success.
func Returns(status int, body Schema) map[int]Response {
	return map[int]Response{status: {Body: body}}
}

// Build returns the OpenAPI document of an API as JSON. Build returns an error unless the description has
// exactly the routes of the API. A second path that ends in .json is left out: the description of the API
// names this form.
func Build(a API, routes *osapi.API) ([]byte, error) {
	components := map[string]any{}
	paths := map[string]map[string]any{}
	open := map[string]bool{}
	missing := map[string]bool{}
	for _, r := range routes.Routes {
		if strings.HasSuffix(r.Path, ".json") {
			continue
		}
		missing[r.Method+" "+r.Path], open[r.Method+" "+r.Path] = true, r.Open
	}
	for _, o := range a.Operations {
		key := o.Method + " " + o.Path
		if !missing[key] {
			return nil, fmt.Errorf(
				"openapi: the API %s has no route %s, or its description names the route twice",
				a.Name,
				key,
			)
		}
		delete(missing, key)
		path := routes.Prefix + o.Path
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][strings.ToLower(o.Method)] = hoist(operation(a, o, open[key]), components)
	}
	for key := range missing {
		return nil, fmt.Errorf("openapi: the API %s does not describe its route %s", a.Name, key)
	}
	components["Error"] = hoist(a.Error, components)
	failure := content(Schema{"$ref": "#/components/schemas/Error"})
	for _, mediaType := range a.ErrorTexts {
		failure[mediaType] = map[string]any{"schema": String()}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(map[string]any{
		"openapi":           "3.1.0",
		"jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
		"info": map[string]any{
			"title":       a.Title,
			"version":     a.Version,
			"description": a.Description,
		},
		"servers":  []any{map[string]any{"url": "/"}},
		"security": []any{map[string]any{"token": []any{}}},
		"paths":    paths,
		"components": map[string]any{
			"schemas": components,
			"securitySchemes": map[string]any{
				"token": map[string]any{
					"type":        "apiKey",
					"in":          "header",
					"name":        "X-Auth-Token",
					"description": "A token of Keystone; with BERTH_AUTH=noauth, any text.",
				},
			},
			"headers": map[string]any{"RequestID": map[string]any{
				"required":    true,
				"schema":      requestID,
				"description": "The ID of the request. The log has the same ID.",
			}},
			"responses": map[string]any{"Error": map[string]any{
				"description": "An error.",
				"headers":     requestIDHeader(nil),
				"content":     failure,
			}},
		},
	})
	return out.Bytes(), err
}

var requestID = Schema{"type": "string", "pattern": "^req-[0-9a-f-]{36}$"}

// operation returns the Operation Object of an operation.
func operation(a API, o Operation, open bool) Schema {
	responses := map[string]any{"default": Schema{"$ref": "#/components/responses/Error"}}
	for status, r := range o.Responses {
		described := map[string]any{"description": r.Description, "headers": requestIDHeader(r.Headers)}
		if r.Description == "" {
			described["description"] = http.StatusText(status) + "."
		}
		if r.Body != nil {
			described["content"] = content(r.Body)
		}
		if r.Lines != nil {
			described["content"] = map[string]any{"application/jsonl": map[string]any{"schema": r.Lines}}
		}
		responses[strconv.Itoa(status)] = described
	}
	v := Schema{
		"operationId": operationID(o),
		"tags":        []string{tag(a, o)},
		"summary":     o.Summary,
		"responses":   responses,
	}
	if all := parameters(a, o); len(all) > 0 {
		v["parameters"] = all
	}
	if o.Body != nil {
		v["requestBody"] = map[string]any{"required": !o.BodyOptional, "content": content(o.Body)}
	}
	if open {
		v["security"] = []any{}
	}
	text := o.Description
	if o.Since != "" {
		v["x-since-microversion"] = o.Since
		text = strings.TrimSpace(text + " The operation exists from microversion " + o.Since + " on.")
	}
	if text != "" {
		v["description"] = text
	}
	return v
}

var pathVariable = regexp.MustCompile(`\{([^}]+)\}`)

// parameters returns the Parameter Objects of an operation: the variables of the path, the query parameters
// and the headers.
func parameters(a API, o Operation) (all []any) {
	for _, m := range pathVariable.FindAllStringSubmatch(o.Path, -1) {
		all = append(all, map[string]any{
			"name":     m[1],
			"in":       "path",
			"required": true,
			"schema":   Name(255),
		})
	}
	add := func(in string, list []Parameter) {
		for _, p := range list {
			described := map[string]any{
				"name":     p.Name,
				"in":       in,
				"required": p.Required,
				"schema":   p.Schema,
			}
			if p.Description != "" {
				described["description"] = p.Description
			}
			all = append(all, described)
		}
	}
	add("query", o.Query)
	add("header", slices.Concat(a.Headers, o.Headers))
	return all
}

func content(s Schema) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": s}}
}

func requestIDHeader(more Fields) map[string]any {
	headers := map[string]any{"X-Openstack-Request-Id": Schema{"$ref": "#/components/headers/RequestID"}}
	for name, s := range more {
		headers[name] = map[string]any{"required": true, "schema": s}
	}
	return headers
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9]+`)

func operationID(o Operation) string {
	return strings.ToLower(o.Method) + notWord.ReplaceAllString(strings.ReplaceAll(o.Path, "}", ""), "_")
}

// tag returns the group of an operation: the first segment of the path that is not a version.
func tag(a API, o Operation) string {
	for segment := range strings.SplitSeq(o.Path, "/") {
		if segment != "" && segment != "v1" && segment != "v2.0" && segment[0] != '{' {
			return segment
		}
	}
	return a.Name
}

// hoist moves the schemas with a name to the components, and replaces each by a reference.
func hoist(v any, components map[string]any) any {
	switch v := v.(type) {
	case Schema:
		name, named := v[componentKey].(string)
		object := map[string]any{}
		for key, value := range v {
			if key != componentKey {
				object[key] = hoist(value, components)
			}
		}
		if !named {
			return object
		}
		components[name] = object
		return map[string]any{"$ref": "#/components/schemas/" + name}
	case Fields:
		object := map[string]any{}
		for key, value := range v {
			object[key] = hoist(value, components)
		}
		return object
	case map[string]any:
		for key, value := range v {
			v[key] = hoist(value, components)
		}
		return v
	case []Schema:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = hoist(s, components)
		}
		return list
	case []any:
		for i, item := range v {
			v[i] = hoist(item, components)
		}
		return v
	default:
		return v
	}
}
