package placement_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/api/openapi/openapitest"
	"berth/internal/api/placement"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// client calls an API on a new database.
type client struct {
	t   *testing.T
	url string
}

// in returns a copy of the client that reports failures to the given subtest.
func (c *client) in(t *testing.T) *client { return &client{t: t, url: c.url} }

func serve(t *testing.T) *client {
	t.Helper()
	return serveTo(t, identity.Noauth{}, policy.Options{})
}

// serveTo starts the Placement API on a new store, with the given authenticator and policy options, and
// returns a client of the API.
func serveTo(t *testing.T, id identity.Authenticator, o policy.Options) *client {
	t.Helper()
	return serveOver(t, storetest.New(t), id, o)
}

// serveOver starts the Placement API on the given store, with the given authenticator and policy options, and
// returns a client of this API.
func serveOver(t *testing.T, s *store.Store, id identity.Authenticator, o policy.Options) *client {
	t.Helper()
	rules, err := policy.Open(o, placement.Policy...)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, url: serveAPI(t, placement.Options{
		Store:      s.Inventory,
		Identity:   id,
		Policy:     rules,
		Incomplete: inventory.Owner{Project: incompleteOwnerID, User: incompleteOwnerID},
	})}
}

// serveAPI serves the API until the test ends, and returns the URL of the API.
func serveAPI(t *testing.T, o placement.Options) string {
	t.Helper()
	server := httptest.NewServer(openapitest.API(t, placement.Description(), placement.New(o)))
	t.Cleanup(server.Close)
	return server.URL + placement.Prefix
}

// answer is the response to a request.
type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

// send sends one request at a microversion. The parameter `headers` is a list in which each header name is
// followed by its value. A header in `headers` replaces the default header with the same name.
func (c *client) send(version, method, path, body string, headers ...string) answer {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "admin")
	if !slices.Contains(headers, "X-Auth-Token") {
		r.Header.Set("X-Roles", "admin,service")
	}
	if version != "" {
		r.Header.Set("OpenStack-API-Version", "placement "+version)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Del(headers[i])
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	a := answer{status: response.StatusCode, header: response.Header, raw: string(raw)}
	_ = json.Unmarshal(raw, &a.body)
	return a
}

// want sends a request. want fails the test unless the response has the given status and contains the text
// `part`.
func (c *client) want(status int, part, version, method, path, body string, headers ...string) answer {
	c.t.Helper()
	a := c.send(version, method, path, body, headers...)
	if a.status != status || !strings.Contains(a.raw, part) {
		c.t.Errorf(
			"%s %s at microversion %q with the body %.200s:\nwant status %d and the text %q\ngot  %d %s",
			method, path, version, body, status, part, a.status, a.raw,
		)
	}
	return a
}

// same fails the test unless the body of the response `a` equals the JSON text `want`.
func (c *client) same(a answer, want string) {
	c.t.Helper()
	var w any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		c.t.Fatal(err)
	}
	if d := cmp.Diff(w, any(a.body)); d != "" {
		c.t.Errorf("response body (-want +got):\n%s", d)
	}
}

// provider creates a provider.
func (c *client) provider(name string) string {
	c.t.Helper()
	id := uuid.NewString()
	c.want(200, id, "1.39", "POST", "/resource_providers", fmt.Sprintf(`{"name":%q,"uuid":%q}`, name, id))
	return id
}

// stock sets the provider's inventories, with the provider's current generation.
func (c *client) stock(provider, inventories string) {
	c.t.Helper()
	g := c.generation(provider)
	c.want(200, "", "1.39", "PUT", "/resource_providers/"+provider+"/inventories",
		fmt.Sprintf(`{"resource_provider_generation":%v,"inventories":%s}`, g, inventories))
}

func (c *client) generation(provider string) any {
	c.t.Helper()
	return c.want(200, "", "1.39", "GET", "/resource_providers/"+provider, "").body["generation"]
}

// code returns the error code in the response body.
func (a answer) code() any {
	errors, _ := a.body["errors"].([]any)
	if len(errors) != 1 {
		return nil
	}
	object, _ := errors[0].(map[string]any)
	return object["code"]
}

func TestVersion_Negotiation(t *testing.T) {
	t.Parallel()
	c := serve(t)

	for header, want := range map[string]string{
		"":                                "placement 1.0",
		"placement 1.7":                   "placement 1.7",
		"placement latest":                "placement 1.39",
		"Placement 1.39":                  "placement 1.39",
		"compute 2.1, placement 1.3":      "placement 1.3",
		"placement 1.3,placement 1.4":     "placement 1.4",
		"placement 1.3, compute 2.1":      "placement 1.3",
		"compute nonsense, placement 1.1": "placement 1.1",
	} {
		t.Run(header, func(t *testing.T) {
			c := c.in(t)
			a := c.want(200, "", "", "GET", "/resource_providers", "", "OpenStack-API-Version", header)
			if got := a.header.Get("OpenStack-API-Version"); got != want || a.header.Get("Vary") == "" {
				t.Errorf(
					"version header %q: got the negotiated version %q; want the one in the test case, and a Vary header",
					header,
					got,
				)
			}
		})
	}
	for _, bad := range []string{"foo", "1.2.3", "pony.horse", "-1.0", "1", "1.2 3"} {
		t.Run(bad, func(t *testing.T) {
			c := c.in(t)
			a := c.want(400, "Invalid microversion: invalid version string: "+bad, bad, "GET", "/", "")
			if a.header.Get("OpenStack-API-Version") != "" {
				t.Errorf(
					"invalid version %q: the response has the header OpenStack-API-Version, want none",
					bad,
				)
			}
		})
	}
	for _, bad := range []string{"1.40", "2.0", "0.9", "1.99999999999999999999"} {
		t.Run(bad, func(t *testing.T) {
			c := c.in(t)
			a := c.want(406, "Unacceptable version header: "+bad, bad, "GET", "/", "")
			object := a.body["errors"].([]any)[0].(map[string]any)
			if object["min_version"] != "1.0" || object["max_version"] != "1.39" {
				t.Errorf("unsupported version %q: got %v, want min_version 1.0 and max_version 1.39",
					bad, object)
			}
		})
	}
	c.want(406, "<h1>406 Not Acceptable</h1>", "9.9", "GET", "/", "", "Accept", "text/html")
	c.want(200, `"max_version":"1.39"`, "", "GET", "/", "", "X-Auth-Token", "")
	c.want(200, `"max_version":"1.39"`, "", "GET", "", "", "X-Auth-Token", "")
}

func TestRequest_CommonChecks(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")

	for _, tc := range []struct {
		status                            int
		part, version, method, path, body string
		headers                           []string
	}{
		{401, "Unauthorized", "", "GET", "/resource_providers", "", []string{"X-Auth-Token", ""}},
		{401, "Unauthorized", "", "GET", "/nowhere", "", []string{"X-Auth-Token", ""}},
		{403, "Policy does not allow placement:resource_providers:list to be performed.", "", "GET", "/resource_providers", "", []string{"X-Auth-Token", "u:p"}},
		{403, "placement:allocations:update", "1.28", "PUT", "/allocations/nonsense", "{", []string{"X-Auth-Token", "u:p"}},
		{403, "placement:resource_providers:show", "", "GET", "/resource_providers/" + p, "", []string{"OpenStack-System-Scope", "all"}},
		{200, "", "", "GET", "/resource_providers", "", []string{"X-Roles", "service", "X-Auth-Token", "nova"}},
		{200, "", "1.9", "GET", "/usages?project_id=p", "", []string{"X-Auth-Token", "u:p", "X-Roles", "reader"}},
		{403, "placement:usages", "1.9", "GET", "/usages?project_id=other", "", []string{"X-Auth-Token", "u:p"}},
		{404, `"title":"Not Found"`, "", "GET", "/nowhere", "", nil},
		{404, "", "", "GET", "/resource_providers/", "", nil},
		{404, "", "1.0", "GET", "/resource_providers/" + p + "/aggregates", "", nil},
		{404, "", "1.12", "POST", "/allocations", "{}", nil},
		{405, "The method PATCH is not allowed", "", "PATCH", "/resource_providers", "", nil},
		{405, "", "1.4", "DELETE", "/resource_providers/" + p + "/inventories", "", nil},
		{406, "", "", "GET", "/resource_providers", "", []string{"Accept", "text/plain"}},
		{200, "", "", "GET", "/resource_providers", "", []string{"Accept", "text/plain, application/*;q=0.1"}},
		{415, "The media type text/plain is not supported, use application/json", "", "POST", "/resource_providers", "x", []string{"Content-Type", "text/plain"}},
		{415, "The media type None is not supported", "", "POST", "/resource_providers", "", nil},
		{400, "content-type header required when content-length", "", "POST", "/resource_providers", "x", []string{"Content-Type", ""}},
		{415, "", "1.0", "PUT", "/resource_providers/" + p + "/aggregates", "", nil},
		{404, "", "1.5", "PUT", "/traits/CUSTOM_A", "", nil},
		{404, "", "", "GET", "/resource_providers/%00", "", nil},
		{404, "", "", "GET", "/resource_providers/%ff%fe", "", nil},
		{400, "", "", "GET", "/resource_providers?name=%ff", "", nil},
		{400, "", "", "GET", "/resource_providers?name=%00", "", nil},
		{400, "", "", "GET", "/resource_providers?name=%zz", "", nil},
		{400, "Additional properties are not allowed ('in_tree' was unexpected)", "1.13", "GET", "/resource_providers?in_tree=" + p, "", nil},
		{200, `"resource_providers":[]`, "1.4", "GET", "/resource_providers?resources=VCPU:1", "", nil},
		{200, p, "1.39", "GET", "/resource_providers?name=", "", nil},
		{200, p, "1.39", "GET", "/resource_providers?name=&uuid=" + p, "", nil},
		{400, "'resources' was unexpected", "1.3", "GET", "/resource_providers?resources=VCPU:1", "", nil},
		{400, "does not match", "1.14", "GET", "/resource_providers?in_tree=x", "", nil},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			c := c.in(t)
			a := c.want(tc.status, tc.part, tc.version, tc.method, tc.path, tc.body, tc.headers...)
			if id := a.header.Get("X-Openstack-Request-Id"); !strings.HasPrefix(id, "req-") {
				t.Errorf("%s %s: got request ID %q, want the prefix req-", tc.method, tc.path, id)
			}
		})
	}
	if a := c.send("", "PATCH", "/resource_providers", ""); a.header.Get("Allow") != "GET, POST" {
		t.Errorf("PATCH /resource_providers: got Allow %q, want GET, POST", a.header.Get("Allow"))
	}
	if code := c.send("1.22", "GET", "/resource_providers/x", "").code(); code != nil {
		t.Errorf("error before microversion 1.23: got code %v, want none", code)
	}
	if code := c.send("1.23", "GET", "/resource_providers/x", "").code(); code != "placement.undefined_code" {
		t.Errorf("error at microversion 1.23: got code %v, want placement.undefined_code", code)
	}
}
