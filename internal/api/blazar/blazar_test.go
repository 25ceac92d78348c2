package blazar

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/api/openapi/openapitest"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/lease"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// service is a client of the API on a test server with some registered hosts.
type service struct {
	*testing.T
	store  *store.Store
	url    string // of the API
	db     string
	policy *policy.Policy // nil: the default rules
	// lists Nova's hypervisors; nil: berth runs without Nova
	hypervisors func(context.Context) ([]lease.Hypervisor, error)
}

type answer struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
}

func newService(t *testing.T, hosts ...string) *service {
	t.Helper()
	db := storetest.URL(t)
	s := storetest.Open(t, db)
	v := &service{T: t, store: s, db: db}
	v.serve(10 * time.Minute)
	for _, h := range hosts {
		v.createHypervisor(h)
		v.expect(201, "POST", "/v1/os-hosts", `{"name":"`+h+`"}`)
	}
	return v
}

// serve starts a new API server on the same database, with the given deletionWait.
func (s *service) serve(deletionWait time.Duration) {
	s.serveAPI(&handler{
		Options: Options{
			Store:       s.store.Lease,
			Identity:    identity.Noauth{},
			Policy:      s.policy,
			Flavor:      s.flavor,
			Hypervisors: s.hypervisors,
		},
		deletionWait: deletionWait,
	})
}

// serveAPI serves an API until the test ends, and makes the client use it.
func (s *service) serveAPI(h *handler) {
	s.Helper()
	server := httptest.NewServer(openapitest.API(s, Description(), newAPI(h)))
	s.Cleanup(server.Close)
	s.url = server.URL + prefix
}

// createHypervisor creates a resource provider that can be registered as a host.
func (s *service) createHypervisor(name string) {
	s.Helper()
	storetest.Exec(s, s.db, `
		with p as (insert into provider (id, uuid, name, root_id)
			select n, $1::text, $2::text, n from nextval('provider_id') as n returning id)
		insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
		select p.id, c.id, 8, 0, 1, 8, 1, 1 from p, resource_class c where c.name = 'VCPU'`, uuid.NewString(), name)
}

// as sends a request with the given token, and with headers of the form "Name: value".
func (s *service) as(token, method, path, body string, headers ...string) answer {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if token != "" {
		r.Header.Set("X-Auth-Token", token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	raw, err := io.ReadAll(got.Body)
	if err != nil {
		s.Fatal(err)
	}
	a := answer{status: got.StatusCode, header: got.Header, raw: string(raw)}
	if len(raw) > 0 {
		if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&a.body); err != nil {
			s.Errorf("decode the answer to %s %s: status %d, body %s; want a JSON object",
				method, path, got.StatusCode, raw)
		}
	}
	return a
}

func (s *service) expect(status int, method, path, body string, headers ...string) answer {
	s.Helper()
	a := s.as("admin", method, path, body, headers...)
	if a.status != status {
		s.Fatalf("%s %s with the body %q: want status %d, got %d %s",
			method, path, body, status, a.status, a.raw)
	}
	return a
}

// in returns the date that is `hours` hours from now, in the format of clients.
func in(hours int) string {
	return time.Now().UTC().Add(time.Duration(hours) * time.Hour).Format("2006-01-02 15:04")
}

func leaseBody(name string, from, to int) string {
	return `{"name":"` + name + `","start_date":"` + in(from) + `","end_date":"` + in(to) + `",
		"events":[],"before_end_date":null,
		"reservations":[{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":"","resource_properties":""}]}`
}

func (s *service) lease(token, name string, from, to int) map[string]any {
	s.Helper()
	a := s.as(token, "POST", "/v1/leases", leaseBody(name, from, to))
	if a.status != 201 {
		s.Fatalf("create a lease: want 201, got %d %s", a.status, a.raw)
	}
	return a.body["lease"].(map[string]any)
}

// stamps checks that the named fields of the object o are not empty, and that dates are in Blazar's format
// without a fraction of a second. stamps then deletes these fields from o, because their values differ from
// run to run.
func stamps(t *testing.T, o map[string]any, names ...string) {
	t.Helper()
	for _, name := range names {
		text, _ := o[name].(string)
		if name == "created_at" || name == "updated_at" {
			if at, err := time.Parse("2006-01-02 15:04:05", text); err != nil ||
				at.Format("2006-01-02 15:04:05") != text {
				t.Errorf("field %s: got %q, want a date without a fraction of a second", name, text)
			}
		} else if text == "" {
			t.Errorf("field %s of the object %v: got an empty string, want a value", name, o)
		}
		delete(o, name)
	}
}

// python-chi 1.2.10 parses created_at of a lease without a fraction of a second, and can neither show nor
// delete a lease whose created_at has one.
func TestDates_OfChangesHaveNoFraction(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	s.expect(200, "PUT", "/v1/os-hosts/1", `{"gpu":"True"}`)
	id := s.lease("u:p", "l", 1, 2)["id"].(string)
	s.expect(200, "PUT", "/v1/leases/"+id, `{"end_date":"`+in(3)+`"}`)
	storetest.Exec(s, s.db, `update reservation set updated_at = clock_timestamp()`)
	storetest.Exec(s, s.db, `update event set updated_at = clock_timestamp()`)

	l := s.expect(200, "GET", "/v1/leases/"+id, "").body["lease"].(map[string]any)
	stamps(t, l, "created_at", "updated_at")
	stamps(t, l["reservations"].([]any)[0].(map[string]any), "created_at", "updated_at")
	for _, e := range l["events"].([]any) {
		stamps(t, e.(map[string]any), "created_at", "updated_at")
	}
	stamps(t, s.expect(200, "GET", "/v1/os-hosts/1", "").body["host"].(map[string]any),
		"created_at", "updated_at")
	for _, name := range []string{"start_date", "end_date"} {
		if at, _ := l[name].(string); len(at) != len(dateOut) || at[10] != 'T' {
			t.Errorf("field %s: got %q, want a date in the format of dateOut", name, at)
		}
	}
}

func TestError_Formats(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, c := range []struct {
		method, path, body string
		header             string
		status             int
		want               map[string]any
	}{
		{"GET", "/v1/leases/nobody", "", "", 404, map[string]any{"error_code": 404.0, "error_name": 404.0, "error_message": "Object with {'lease_id': 'nobody'} not found"}},
		{"GET", "/v1/os-hosts/x", "", "", 404, map[string]any{"error_code": 404.0, "error_name": 404.0, "error_message": "Object with {'host': 'x'} not found"}},
		{"GET", "/v1/nothing", "", "", 404, map[string]any{"error": 404.0, "error_message": "The requested URL was not found on the server."}},
		{"GET", "/v1/leases/", "", "", 404, map[string]any{"error": 404.0, "error_message": "The requested URL was not found on the server."}},
		{"GET", "/v1", "", "", 404, map[string]any{"error": 404.0, "error_message": "The requested URL was not found on the server."}},
		{"PATCH", "/v1/leases", "{}", "", 405, map[string]any{"error": 405.0, "error_message": "The method PATCH is not allowed for this resource."}},
		{"GET", "/v1/leases", "", "OpenStack-API-Version: reservation 1.1", 406, map[string]any{"error": 406.0,
			"error_message": "Version 1.1 is not supported by the API. Minimum is 1.0 and maximum is 1.0."}},
		{"GET", "/v1/leases", "", "OpenStack-API-Version: reservation 1.a", 400, map[string]any{"error": 400.0,
			"error_message": "API Version String '1.a' is of invalid format. Must be of format MajorNum.MinorNum."}},
		{"POST", "/v1/leases", "name=x", "Content-Type: application/x-www-form-urlencoded", 400, map[string]any{"error": 400.0,
			"error_message": "Content type 'application/x-www-form-urlencoded' isn't supported; use application/json."}},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			var headers []string
			if c.header != "" {
				headers = append(headers, c.header)
			}
			a := s.expect(c.status, c.method, c.path, c.body, headers...)
			if d := cmp.Diff(c.want, a.body); d != "" {
				t.Errorf("error body of %s %s (-want +got):\n%s", c.method, c.path, d)
			}
		})
	}
	if allow := s.expect(405, "PATCH", "/v1/leases", "{}").header.Get("Allow"); allow != "GET, POST" {
		t.Errorf("PATCH /v1/leases: got the header Allow %q, want GET, POST", allow)
	}
}

func TestResponse_Headers(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, header := range []string{"", "OpenStack-API-Version: reservation latest", "OpenStack-API-Version: reservation 1.0",
		"OpenStack-API-Version: compute 2.90"} {
		t.Run(header, func(t *testing.T) {
			var headers []string
			if header != "" {
				headers = append(headers, header)
			}
			a := s.expect(200, "GET", "/v1/leases", "", headers...)
			if a.header.Get("OpenStack-API-Version") != "reservation 1.0" ||
				a.header.Get("Vary") != "OpenStack-API-Version" ||
				!strings.HasPrefix(a.header.Get("X-Openstack-Request-Id"), "req-") {
				t.Errorf(
					"request with the header %q: got headers %v, want version 1.0, Vary and a request ID",
					header,
					a.header,
				)
			}
		})
	}
	a := s.expect(404, "GET", "/v1/leases/x", "")
	if a.header.Get("OpenStack-API-Version") != "reservation 1.0" {
		t.Errorf("error of a known path: got headers %v, want OpenStack-API-Version: reservation 1.0",
			a.header)
	}
	if a := s.expect(404, "GET", "/v1/x", ""); a.header.Get("OpenStack-API-Version") != "" {
		t.Errorf("error of an unknown path: got headers %v, want no OpenStack-API-Version", a.header)
	}
}

func TestVersions_NeedNoToken(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, path := range []string{"", "/", "/versions"} {
		t.Run(path, func(t *testing.T) {
			a := s.as("", "GET", path, "")
			v, _ := a.body["versions"].([]any)
			if a.status != http.StatusMultipleChoices || len(v) != 1 {
				t.Fatalf("version document at %q: got %d %s, want 300 with one version",
					path, a.status, a.raw)
			}
			href := v[0].(map[string]any)["links"].([]any)[0].(map[string]any)["href"]
			if v[0].(map[string]any)["id"] != "v1.0" || href != s.url+"/v1" {
				t.Errorf("entry of the version document: got %s, want v1.0 with a link to /v1", a.raw)
			}
		})
	}
	a := s.as("", "GET", "/v1/leases", "")
	inner, _ := a.body["error"].(map[string]any)
	if a.status != 401 || inner["title"] != "Unauthorized" {
		t.Errorf("request without a token: got %d, headers %v, body %s; want 401 Unauthorized",
			a.status, a.header, a.raw)
	}
}
