package openapitest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/api/openapi"
	"berth/internal/api/openapi/openapitest"
	"berth/internal/api/osapi"
	"berth/internal/identity"
)

// failures is a test that records its failures.
type failures struct {
	testing.TB
	mu    sync.Mutex
	texts []string
}

func (f *failures) Errorf(format string, values ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.texts = append(f.texts, fmt.Sprintf(format, values...))
}

// serveShips serves an API with the resource ships, whose answers the function `answer` returns.
func serveShips(t *testing.T, f *failures, answer osapi.Handler) string {
	t.Helper()
	failure := func(w http.ResponseWriter, _ *http.Request, e *osapi.Error) {
		osapi.WriteJSON(w, e.Status, map[string]any{"error": map[string]any{
			"code":    e.Status,
			"message": e.Message,
		}})
	}
	api := &osapi.API{
		Prefix:   "/harbor",
		Identity: identity.Noauth{},
		Fail:     failure,
		Routes: []osapi.Route{
			{Method: http.MethodGet, Path: "/ships/{id}", Handle: answer},
			{Method: http.MethodDelete, Path: "/ships/{id}", Handle: answer},
			{Method: http.MethodGet, Path: "/ships/newest", Handle: answer},
		},
	}
	ship := openapi.Object(openapi.Fields{"name": openapi.String(), "length": openapi.Integer()}, "length")
	description := openapi.API{Name: "harbor", Version: "1.2", Error: openapi.ErrorSchema()}
	for path, version := range map[string]string{"/ships/{id}": "harbor 1.2", "/ships/newest": "harbor 1.1"} {
		description.Operations = append(description.Operations, openapi.Operation{
			Method:  http.MethodGet,
			Path:    path,
			Summary: "Show a ship.",
			Responses: map[int]openapi.Response{http.StatusOK: {
				Body:    ship,
				Headers: openapi.Fields{"OpenStack-API-Version": openapi.Const(version)},
			}},
		})
	}
	description.Operations = append(description.Operations, openapi.Operation{
		Method:    http.MethodDelete,
		Path:      "/ships/{id}",
		Summary:   "Delete a ship.",
		Responses: openapi.Returns(http.StatusNoContent, nil),
	})
	server := httptest.NewServer(openapitest.API(f, description, api))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAPI_FailsTheTestWhoseAnswerDiffersFromTheDocument(t *testing.T) {
	t.Parallel()
	type answer struct {
		status  int
		body    any
		version string
	}
	ship := map[string]any{"name": "Vasa", "length": 69}
	for name, c := range map[string]struct {
		request string
		answer  answer
		want    string // part of the only failure; "": none
	}{
		"as described":            {"GET /ships/1", answer{200, ship, "harbor 1.2"}, ""},
		"with an unknown field":   {"GET /ships/1", answer{200, map[string]any{"name": "", "sunk": true}, "harbor 1.2"}, ""},
		"without a required one":  {"GET /ships/1", answer{200, map[string]any{}, "harbor 1.2"}, "missing property 'name'"},
		"only the chosen fields":  {"GET /ships/1?fields=length", answer{200, map[string]any{"length": 1}, "harbor 1.2"}, ""},
		"a chosen field is wrong": {"GET /ships/1?fields=length", answer{200, map[string]any{"length": "x"}, "harbor 1.2"}, "at /length: got string, want integer"},
		"a wrong type":            {"GET /ships/1", answer{200, map[string]any{"name": 7}, "harbor 1.2"}, "at /name: got number, want string"},
		"another status":          {"GET /ships/1", answer{202, ship, "harbor 1.2"}, "does not describe the status"},
		"another microversion":    {"GET /ships/newest", answer{200, map[string]any{}, "harbor 1.1"}, ""},
		"without a header":        {"GET /ships/1", answer{200, ship, ""}, "OpenStack-API-Version"},
		"a header is wrong":       {"GET /ships/newest", answer{200, ship, "harbor 1.2"}, "value must be"},
		"without a body":          {"GET /ships/1", answer{200, nil, "harbor 1.2"}, "does not describe the media type"},
		"not an object":           {"GET /ships/1", answer{200, []byte("null"), "harbor 1.2"}, "the body is null"},
		"not JSON":                {"GET /ships/1", answer{200, []byte("{"), "harbor 1.2"}, "the body is not JSON"},
		"no body as described":    {"DELETE /ships/1", answer{204, nil, ""}, ""},
		"with a body":             {"DELETE /ships/1", answer{200, ship, ""}, "does not describe the status"},
		"an error":                {"GET /ships/1", answer{404, map[string]any{"error": map[string]any{"code": 404, "message": ""}}, ""}, ""},
		"an error without a code": {"GET /ships/1", answer{404, map[string]any{"error": map[string]any{"message": ""}}, ""}, "missing property 'code'"},
		"an unknown path":         {"GET /ships/1/anchors", answer{}, ""},
		"an unknown method":       {"PUT /ships/1", answer{}, ""},
		"a large body is wrong":   {"GET /ships/1", answer{200, []byte(`{"name":7` + strings.Repeat(" ", 2<<20) + `}`), "harbor 1.2"}, "at /name: got number, want string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &failures{}
			t.Run("exchange", func(t *testing.T) {
				f.TB = t
				url := serveShips(t, f, func(r *http.Request) (int, any, error) {
					if c.answer.version != "" {
						osapi.Header(r.Context()).Set("OpenStack-API-Version", c.answer.version)
					}
					return c.answer.status, c.answer.body, nil
				})
				direct, proxied := exchange(t, url, c.request), exchange(t, openapitest.Proxy(f, url), c.request)
				if diff := cmp.Diff(direct, proxied); diff != "" {
					t.Errorf("the answer through the proxy differs (-direct +proxied):\n%s", diff)
				}
			})
			if c.want == "" && len(f.texts) > 0 {
				t.Errorf("got the failures %q, want none", f.texts)
			}
			// one failure of the API for each request, and one of the proxy
			if c.want != "" && (len(f.texts) != 3 || !strings.Contains(f.texts[0], c.want) ||
				f.texts[1] != f.texts[0] || f.texts[2] != f.texts[0]) {
				t.Errorf("got the failures %q, want three times one that contains %q", f.texts, c.want)
			}
		})
	}
}

func TestHandler_ReportsAtMost20DifferencesOfAServer(t *testing.T) {
	t.Parallel()
	f := &failures{}
	t.Run("exchange", func(t *testing.T) {
		f.TB = t
		url := serveShips(t, f, func(*http.Request) (int, any, error) { return http.StatusAccepted, nil, nil })
		for range 30 {
			exchange(t, url, "GET /ships/1")
		}
	})
	if len(f.texts) != 20 {
		t.Errorf("failures of 30 answers that differ from the document: got %d, want 20", len(f.texts))
	}
}

func TestHandler_FailsTheTestWhoseAnswerIsTooLargeToCompare(t *testing.T) {
	t.Parallel()
	f := &failures{}
	t.Run("exchange", func(t *testing.T) {
		f.TB = t
		url := serveShips(t, f, func(r *http.Request) (int, any, error) {
			osapi.Header(r.Context()).Set("OpenStack-API-Version", "harbor 1.2")
			return http.StatusOK, []byte(`{"name":"` + strings.Repeat("a", 32<<20) + `"}`), nil
		})
		exchange(t, url, "GET /ships/1")
	})
	const want = "the body has more than 32 MiB"
	if len(f.texts) != 1 || !strings.Contains(f.texts[0], want) {
		t.Errorf("got %d failures %.300q, want one that contains %q", len(f.texts), f.texts, want)
	}
}

// A process with BERTH_AUTH=noauth answers only requests to loopback addresses.
func TestProxy_ReadsTheDocumentsOfAServerThatAnswersLoopbackOnly(t *testing.T) {
	t.Parallel()
	f := &failures{}
	t.Run("exchange", func(t *testing.T) {
		f.TB = t
		documents := openapi.Handlers([]openapi.Document{{Name: "harbor", JSON: []byte(`{}`)}})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			host, _, _ := strings.Cut(r.Host, ":")
			if h, ok := documents[r.URL.Path]; ok && host == "localhost" {
				h(w, r)
				return
			}
			w.WriteHeader(http.StatusForbidden)
		}))
		t.Cleanup(server.Close)
		exchange(t, openapitest.Proxy(f, server.URL), "GET /ships/1")
	})
	if len(f.texts) != 1 || !strings.Contains(f.texts[0], "document /openapi/harbor.json") {
		t.Errorf("got the failures %q, want one about the document, which is not valid", f.texts)
	}
}

// exchange sends a request such as "GET /ships/1", and returns the status and the body of the answer.
func exchange(t *testing.T, url, request string) string {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, url+"/harbor"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "admin")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", answer.StatusCode, body)
}
