package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	invalid "github.com/pb33f/libopenapi-validator/errors"
	"github.com/pb33f/libopenapi-validator/responses"
	"github.com/pb33f/libopenapi/datamodel/high/base"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
)

// document is a compiled OpenAPI document of one API.
type document struct {
	prefix  string // the first segments of all paths, such as /agent/v1
	version string
	paths   map[string]*v3.PathItem
	failure *v3.Response // response of every error
	options config.Option
	// The library changes a schema while it compares a value with the schema, so comparisons take turns.
	comparing sync.Mutex
}

var (
	compiledMu sync.Mutex
	compiled   = map[string]*document{} // by the JSON of the document
)

// compile returns the compiled form of a document. It compiles each document once per process.
func compile(raw []byte) (*document, error) {
	compiledMu.Lock()
	defer compiledMu.Unlock()
	if d := compiled[string(raw)]; d != nil {
		return d, nil
	}
	parsed, err := libopenapi.NewDocument(raw)
	if err != nil {
		return nil, err
	}
	if version := parsed.GetVersion(); version != "3.1.0" {
		return nil, fmt.Errorf("the OpenAPI version is %q, want 3.1.0", version)
	}
	model, err := parsed.BuildV3Model()
	if err != nil {
		return nil, err
	}
	v := validator.NewValidatorFromV3Model(&model.Model)
	defer v.Release()
	v.SetDocument(parsed)
	if _, faults := v.ValidateDocument(); len(faults) > 0 {
		return nil, fmt.Errorf("not a valid OpenAPI document: %v", faults)
	}
	d := &document{
		version: model.Model.Info.Version,
		paths:   maps.Collect(model.Model.Paths.PathItems.FromOldest()),
		failure: model.Model.Components.Responses.GetOrZero("Error"),
		options: config.WithExistingOpts(config.NewValidationOptions()),
	}
	if d.failure == nil {
		return nil, errors.New("the document has no response for errors")
	}
	d.prefix = commonPrefix(slices.Collect(maps.Keys(d.paths)))
	compiled[string(raw)] = d
	return d, nil
}

// commonPrefix returns the segments with which all paths begin, such as /agent/v1, without the last segment
// of a path.
func commonPrefix(paths []string) string {
	common := strings.Split(paths[0], "/")
	for _, path := range paths {
		segments := strings.Split(path, "/")
		segments = segments[:len(segments)-1]
		n := 0
		for n < min(len(common), len(segments)) && common[n] == segments[n] {
			n++
		}
		common = common[:n]
	}
	return strings.Join(common, "/")
}

// describes reports whether the path is below the prefix of the API.
func (d *document) describes(path string) bool {
	return path == d.prefix || strings.HasPrefix(path, d.prefix+"/")
}

// operation returns the operation of a request, or nil if the document describes none. A path in braces
// matches any text, and a path that is written out has precedence. A path that does not end in braces also
// exists with the suffix .json.
func (d *document) operation(method, path string) *v3.Operation {
	if path == d.prefix {
		path += "/"
	}
	var found *v3.PathItem
	least := -1
	for template, item := range d.paths {
		variables, ok := matchPath(template, path)
		if plain, cut := strings.CutSuffix(path, ".json"); !ok && cut && !strings.HasSuffix(template, "}") {
			variables, ok = matchPath(template, plain)
		}
		if ok && (least < 0 || variables < least) {
			found, least = item, variables
		}
	}
	if found == nil {
		return nil
	}
	return found.GetOperations().GetOrZero(strings.ToLower(method))
}

// matchPath compares a path with a template, and returns the number of segments in braces.
func matchPath(template, path string) (variables int, ok bool) {
	want, segments := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(segments) {
		return 0, false
	}
	for i, part := range want {
		switch {
		case strings.HasPrefix(part, "{") && segments[i] != "":
			variables++
		case part != segments[i]:
			return 0, false
		}
	}
	return variables, true
}

// answer is an answer of the server to a request.
type answer struct {
	request *http.Request
	status  int
	header  http.Header
	body    []byte // the first maxBody bytes
	long    bool   // the answer has more than maxBody bytes
}

// differences returns what in the answer differs from the document.
func (d *document) differences(a answer) []string {
	d.comparing.Lock()
	defer d.comparing.Unlock()
	if a.request.Method == http.MethodOptions && a.request.Header.Get("Access-Control-Request-Method") != "" {
		return nil // osapi.CORS answers the requests that a browser sends before another request
	}
	if a.status >= http.StatusBadRequest {
		return d.compare(a, d.failure)
	}
	if _, version, ok := strings.Cut(a.header.Get("OpenStack-API-Version"), " "); ok && version != d.version {
		return d.compareHeaders(a, d.failure) // the headers that every answer has
	}
	operation := d.operation(a.request.Method, a.request.URL.Path)
	if operation == nil {
		return []string{"the document does not describe the operation, so the answer must be an error"}
	}
	described := operation.Responses.Codes.GetOrZero(strconv.Itoa(a.status))
	if described == nil {
		return []string{"the document does not describe the status"}
	}
	return d.compare(a, described)
}

// compareHeaders returns what in the headers of the answer differs from the description of a response.
func (d *document) compareHeaders(a answer, described *v3.Response) []string {
	_, faults := responses.ValidateResponseHeaders(
		a.request,
		&http.Response{Header: a.header},
		described.Headers,
		a.request.URL.Path,
		strconv.Itoa(a.status),
		d.options,
	)
	return describe(faults, false)
}

// compare returns what in the answer differs from the description of a response.
func (d *document) compare(a answer, described *v3.Response) (differences []string) {
	differences = d.compareHeaders(a, described)
	if a.request.Method == http.MethodHead || described.Content == nil && len(a.body) == 0 {
		return differences
	}
	if a.long {
		return append(differences, fmt.Sprintf("the body has more than %d MiB, the most that can be compared", maxBody>>20))
	}
	if described.Content == nil {
		return append(differences, "the document describes no body")
	}
	mediaType, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	content := described.Content.GetOrZero(mediaType)
	if content == nil {
		return append(differences, fmt.Sprintf("the document does not describe the media type %q", mediaType))
	}
	var values [][]byte
	switch mediaType {
	case "application/json":
		values = [][]byte{a.body}
	case "application/jsonl":
		values = slices.Collect(bytes.Lines(a.body))
	}
	for _, value := range values {
		differences = append(differences, d.compareValue(a, value, content.Schema.Schema())...)
	}
	return differences
}

// compareValue returns what in a JSON value of an answer differs from a schema.
func (d *document) compareValue(a answer, value []byte, schema *base.Schema) []string {
	switch {
	case !json.Valid(value):
		return []string{"the body is not JSON"}
	case string(bytes.TrimSpace(value)) == "null" && !slices.Contains(schema.Type, "null"):
		return []string{"the body is null"} // ValidateResponseSchema accepts null for every schema
	}
	_, faults := responses.ValidateResponseSchema(&responses.ValidateResponseSchemaInput{
		Request:  a.request,
		Response: &http.Response{StatusCode: a.status, Body: io.NopCloser(bytes.NewReader(value))},
		Schema:   schema,
		Version:  3.1,
		Options:  []config.Option{d.options},
	})
	// with the parameter fields, an object has only the attributes that the client has selected
	return describe(faults, a.request.URL.Query().Has("fields"))
}

// describe returns the faults as texts. If `partial` is true, a missing field is not a fault.
func describe(faults []*invalid.ValidationError, partial bool) (texts []string) {
	for _, fault := range faults {
		if len(fault.SchemaValidationErrors) == 0 {
			texts = append(texts, fault.Message+": "+fault.Reason)
		}
		for _, e := range fault.SchemaValidationErrors {
			if !partial || !strings.HasSuffix(e.KeywordLocation, "/required") {
				texts = append(texts, fmt.Sprintf("at /%s: %s", strings.Join(e.InstancePath, "/"), e.Reason))
			}
		}
	}
	return texts
}
