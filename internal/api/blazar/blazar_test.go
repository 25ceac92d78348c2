package blazar

import (
	"bytes"
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

	"berth/internal/identity"
	"berth/internal/lease"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// service is the API on a server with some registered hosts.
type service struct {
	*testing.T
	store *store.Store
	url   string // of the API
	db    string
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
	s, err := store.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	v := &service{T: t, store: s, db: db}
	v.serve(300 * time.Millisecond)
	for _, h := range hosts {
		v.hypervisor(h)
		v.expect(201, "POST", "/v1/os-hosts", `{"name":"`+h+`"}`)
	}
	return v
}

// serve lets the service answer from now on with that patience for deletions.
func (s *service) serve(deletion time.Duration) {
	server := httptest.NewServer(newAPI(&room{Options: Options{Store: s.store, Identity: identity.Noauth{}, Flavor: s.flavor}, deletion: deletion}))
	s.Cleanup(server.Close)
	s.url = server.URL + prefix
}

// hypervisor makes a provider that can be registered as a host.
func (s *service) hypervisor(name string) {
	s.Helper()
	storetest.Exec(s, s.db, `
		with p as (insert into provider (id, uuid, name, root_id)
			select n, $1::text, $2::text, n from nextval('provider_id') as n returning id)
		insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
		select p.id, c.id, 8, 0, 1, 8, 1, 1 from p, resource_class c where c.name = 'VCPU'`, uuid.NewString(), name)
}

// as sends a request with that token and headers given as "Name: value".
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
			s.Errorf("%s %s answered %d with no JSON object: %s", method, path, got.StatusCode, raw)
		}
	}
	return a
}

func (s *service) expect(status int, method, path, body string, headers ...string) answer {
	s.Helper()
	a := s.as("admin", method, path, body, headers...)
	if a.status != status {
		s.Fatalf("%s %s %s: want %d, got %d %s", method, path, body, status, a.status, a.raw)
	}
	return a
}

// in is a date that many hours from now, in the form that clients send.
func in(hours int) string {
	return time.Now().UTC().Add(time.Duration(hours) * time.Hour).Format("2006-01-02 15:04")
}

func leaseBody(name string, from, to int) string {
	return `{"name":"` + name + `","start_date":"` + in(from) + `","end_date":"` + in(to) + `","events":[],"before_end_date":null,
		"reservations":[{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":"","resource_properties":""}]}`
}

func (s *service) lease(token, name string, from, to int) map[string]any {
	s.Helper()
	a := s.as(token, "POST", "/v1/leases", leaseBody(name, from, to))
	if a.status != 201 {
		s.Fatalf("want 201, got %d %s", a.status, a.raw)
	}
	return a.body["lease"].(map[string]any)
}

func TestLeaseJSON(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	a := s.as("alice:red", "POST", "/v1/leases", `{"name":"gold","start_date":"2040-01-01 10:00","end_date":"2040-01-01 12:00",
		"reservations":[{"resource_type":"physical:host","min":1,"max":"2","hypervisor_properties":"[\">=\",\"$vcpus\",\"2\"]","resource_properties":""}],
		"events":[],"before_end_date":null}`)
	if a.status != 201 || a.header.Get("Location") != "" {
		t.Fatalf("%d %v %s", a.status, a.header, a.raw)
	}
	l := a.body["lease"].(map[string]any)
	id := l["id"].(string)
	r := l["reservations"].([]any)[0].(map[string]any)
	stamps(t, l, "created_at")
	stamps(t, r, "created_at")
	events := l["events"].([]any)
	for _, e := range events {
		stamps(t, e.(map[string]any), "id", "created_at")
	}
	event := func(typ, at string) map[string]any {
		return map[string]any{"lease_id": id, "event_type": typ, "time": at, "status": "UNDONE", "updated_at": nil}
	}
	want := map[string]any{
		"id": id, "name": "gold", "user_id": "alice", "project_id": "red", "status": "PENDING", "degraded": false, "trust_id": nil,
		"start_date": "2040-01-01T10:00:00.000000", "end_date": "2040-01-01T12:00:00.000000", "updated_at": nil,
		"reservations": []any{map[string]any{"id": r["id"], "lease_id": id, "resource_id": r["id"], "resource_type": "physical:host",
			"status": "pending", "missing_resources": false, "resources_changed": false, "min": 1.0, "max": 2.0,
			"hypervisor_properties": `[">=","$vcpus","2"]`, "resource_properties": "", "before_end": "default", "updated_at": nil}},
		"events": []any{event("start_lease", "2040-01-01T10:00:00.000000"), event("before_end_lease", "2040-01-01T11:00:00.000000"),
			event("end_lease", "2040-01-01T12:00:00.000000")},
	}
	why := l["berth:why"].(map[string]any)
	delete(l, "berth:why")
	if d := cmp.Diff(want, l); d != "" {
		t.Error(d)
	}
	if why["sentence"] != "PENDING: start_lease is next, at 2040-01-01T10:00:00Z." {
		t.Errorf("why: %v", why)
	}
	waiting := why["waiting"].([]any)[0].(map[string]any)
	if waiting["for"] != "start_lease" || waiting["deadline"] != "2040-01-01T10:00:00Z" || waiting["since"] == nil {
		t.Errorf("waiting: %v", waiting)
	}
	for _, path := range []string{"/v1/leases/" + id, "/v1/leases/" + id + ".json"} {
		if got := s.expect(200, "GET", path, ""); got.body["lease"].(map[string]any)["name"] != "gold" {
			t.Errorf("shown: %s", got.raw)
		}
	}
}

// stamps checks and removes what differs from run to run.
func stamps(t *testing.T, o map[string]any, names ...string) {
	t.Helper()
	for _, name := range names {
		text, _ := o[name].(string)
		if name == "created_at" {
			if _, err := time.Parse("2006-01-02 15:04:05.999999", text); err != nil {
				t.Errorf("created_at: %v", err)
			}
		} else if text == "" {
			t.Errorf("no %s in %v", name, o)
		}
		delete(o, name)
	}
}

func TestLeaseSecondExact(t *testing.T) {
	t.Parallel()
	s := newService(t)
	a := s.expect(201, "POST", "/v1/leases", `{"name":"x","start_date":"2040-11-21T15:20:05+01:00","end_date":"2040-11-21T14:20:35.5Z"}`)
	l := a.body["lease"].(map[string]any)
	if l["start_date"] != "2040-11-21T14:20:05.000000" || l["end_date"] != "2040-11-21T14:20:35.500000" {
		t.Errorf("%v to %v", l["start_date"], l["end_date"])
	}
}

func TestLeaseFromNowIsDueAtOnce(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	body := strings.Replace(leaseBody("n", 0, 2), in(0), "now", 1)
	a := s.expect(201, "POST", "/v1/leases", body)
	l := a.body["lease"].(map[string]any)
	if !strings.HasSuffix(l["start_date"].(string), ":00.000000") {
		t.Errorf("now is %v", l["start_date"])
	}
	row, err := s.store.Lease(t.Context(), uuid.MustParse(l["id"].(string)))
	if err != nil || lease.Next(row, time.Now()).Step != lease.Start {
		t.Errorf("not due: %+v, %v", row, err)
	}
}

func TestUpdateOverREST(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	id := s.lease("alice:red", "gold", 2, 4)["id"].(string)
	path := "/v1/leases/" + id
	for _, c := range []struct {
		body   string
		status int
	}{
		{`{}`, 200},
		{`{"name":"silver"}`, 200},
		{`{"end_date":"` + in(6) + `"}`, 200},
		{`{"end_date":"` + in(6) + `","before_end_date":"` + in(5) + `"}`, 200},
		{`{"before_end_date":"` + in(7) + `"}`, 403},
		{`{"end_date":"` + in(1) + `"}`, 400},
		{`{"end_date":"tomorrow"}`, 400},
		{`{"project_id":"blue"}`, 400},
		{`{"status":"ACTIVE"}`, 400},
		{`{"name":null}`, 400},
		{`{"reservations":[{"min":2}]}`, 400},
		{`{"reservations":[{"id":"x","min":2}]}`, 400},
		{`{"reservations":{}}`, 400},
		{`{"reservations":[null]}`, 400},
	} {
		a := s.as("alice:red", "PUT", path, c.body)
		if a.status != c.status {
			t.Errorf("%s: want %d, got %d %s", c.body, c.status, a.status, a.raw)
		}
		if a.status == 200 && a.body["lease"].(map[string]any)["status"] != "PENDING" {
			t.Errorf("%s: %s", c.body, a.raw)
		}
	}
	l := s.expect(200, "GET", path, "").body["lease"].(map[string]any)
	if l["name"] != "silver" || l["project_id"] != "red" || l["status"] != "PENDING" {
		t.Errorf("after all: %v", l)
	}
}

func TestRefusedLeasesLeaveNothing(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	with := func(reservation string) string {
		return `{"name":"l","start_date":"` + in(1) + `","end_date":"` + in(2) + `","reservations":[` + reservation + `]}`
	}
	host := `{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":"","resource_properties":""`
	for _, c := range []struct {
		name, body string
		status     int
		message    string // exact, or its beginning with …
	}{
		{"no body", ``, 400, "Malformed JSON…"},
		{"no JSON", `{`, 400, "Malformed JSON…"},
		{"two values", `{} {}`, 400, "Malformed JSON…"},
		{"duplicate keys", `{"name":"a","name":"b"}`, 400, "Malformed JSON…"},
		{"too deep", strings.Repeat("[", 100000), 400, "Malformed JSON…"},
		{"an array", `[]`, 400, "The request body must be a JSON object."},
		{"null", `null`, 400, "The request body must be a JSON object."},
		{"nothing", `{}`, 400, "Missing parameter name,start_date,end_date"},
		{"no end", `{"name":"l","start_date":"now"}`, 400, "Missing parameter end_date"},
		{"unknown field", `{"name":"l","start_date":"now","end_date":"` + in(1) + `","degraded":true}`, 400, "Unknown parameter degraded"},
		{"name of a wrong type", `{"name":7,"start_date":"now","end_date":"` + in(1) + `"}`, 400, "Malformed parameter name: it must be a string."},
		{"empty name", `{"name":"","start_date":"now","end_date":"` + in(1) + `"}`, 400, "The lease name must not be empty."},
		{"long name", `{"name":"` + strings.Repeat("é", 81) + `","start_date":"now","end_date":"` + in(1) + `"}`, 400, "The lease name must not be longer than 80 characters."},
		{"NUL in the name", `{"name":"a\u0000","start_date":"now","end_date":"` + in(1) + `"}`, 400, "Malformed JSON…"},
		{"month 13", `{"name":"l","start_date":"2040-13-01 10:00","end_date":"now"}`, 400, "2040-13-01 10:00 is an invalid date. Required format: %Y-%m-%d %H:%M"},
		{"ISO without a zone", `{"name":"l","start_date":"2040-01-01T10:00:00","end_date":"now"}`, 400, "2040-01-01T10:00:00 is an invalid date. Required format: %Y-%m-%d %H:%M"},
		{"seconds", `{"name":"l","start_date":"2040-01-01 10:00:00","end_date":"now"}`, 400, "2040-01-01 10:00:00 is an invalid date. Required format: %Y-%m-%d %H:%M"},
		{"a number as date", `{"name":"l","start_date":1,"end_date":"now"}`, 400, "1 is an invalid date. Required format: %Y-%m-%d %H:%M"},
		{"the year 10000", `{"name":"l","start_date":"now","end_date":"9999-12-31T23:59:59-01:00"}`, 400, "9999-12-31T23:59:59-01:00 is an invalid date…"},
		{"past", `{"name":"l","start_date":"2020-01-01 10:00","end_date":"` + in(1) + `"}`, 400, "Start date must be later than current date."},
		{"end before start", `{"name":"l","start_date":"` + in(2) + `","end_date":"` + in(1) + `"}`, 400, "End date must be later than start date."},
		{"before_end now", `{"name":"l","start_date":"now","end_date":"` + in(2) + `","before_end_date":"now"}`, 400, "now is an invalid date…"},
		{"before_end outside", `{"name":"l","start_date":"now","end_date":"` + in(2) + `","before_end_date":"` + in(3) + `"}`, 403, "Datetime is out of lease limits"},
		{"events no list", `{"name":"l","start_date":"now","end_date":"` + in(2) + `","events":7}`, 400, "Malformed parameter events…"},
		{"reservations no list", `{"name":"l","start_date":"now","end_date":"` + in(2) + `","reservations":{}}`, 400, "Malformed parameter reservations…"},
		{"no resource type", with(`{}`), 400, "Missing parameter resource_type"},
		{"unknown resource type", with(`{"resource_type":"virtual:fridge","doors":2}`), 400, "The resource type virtual:fridge is not supported."},
		{"no min", with(`{"resource_type":"physical:host","max":1,"hypervisor_properties":""}`), 400, "Missing parameter min,resource_properties"},
		{"unknown key", with(host + `,"gpu":1}`), 400, "Unknown parameter gpu"},
		{"min no number", with(strings.Replace(host, `"min":1`, `"min":"one"`, 1) + `}`), 400, "Malformed parameter min: it must be an integer."},
		{"min a fraction", with(strings.Replace(host, `"min":1`, `"min":1.5`, 1) + `}`), 400, "Malformed parameter min: it must be an integer."},
		{"min too large", with(strings.Replace(host, `"min":1`, `"min":99999999999999999999`, 1) + `}`), 400, "Malformed parameter min: it must be an integer."},
		{"min zero", with(strings.Replace(host, `"min":1`, `"min":0`, 1) + `}`), 400, "Malformed parameter min or max…"},
		{"max below min", with(strings.Replace(host, `"min":1`, `"min":2`, 1) + `}`), 400, "Invalid range…"},
		{"requirements an array", with(strings.Replace(host, `"hypervisor_properties":""`, `"hypervisor_properties":["=","$a","b"]`, 1) + `}`), 400, "Malformed parameter hypervisor_properties…"},
		{"requirements malformed", with(strings.Replace(host, `"hypervisor_properties":""`, `"hypervisor_properties":"[\"or\"]"`, 1) + `}`), 400, "Malformed requirements…"},
		{"property unknown", with(strings.Replace(host, `"hypervisor_properties":""`, `"hypervisor_properties":"[\"=\",\"$gpo\",\"x\"]"`, 1) + `}`), 400, `No host has the property "gpo".`},
		{"before_end unknown", with(host + `,"before_end":"email"}`), 400, "Malformed parameter before_end"},
		{"too many hosts", with(strings.Replace(strings.Replace(host, `"min":1`, `"min":2`, 1), `"max":1`, `"max":2`, 1) + `}`), 409, "Not enough hosts available"},
	} {
		a := s.expect(c.status, "POST", "/v1/leases", c.body, "Content-Type: application/json")
		message, _ := a.body["error_message"].(string)
		if begin, open := strings.CutSuffix(c.message, "…"); message != c.message && !(open && strings.HasPrefix(message, begin)) {
			t.Errorf("%s: %q", c.name, message)
		}
	}
	if a := s.expect(413, "POST", "/v1/leases", `{"name":"`+strings.Repeat("x", 1<<20)+`"}`); a.body["error"] != 413.0 {
		t.Errorf("a large body: %s", a.raw)
	}
	if all := s.expect(200, "GET", "/v1/leases", "").body["leases"].([]any); len(all) != 0 {
		t.Errorf("left: %v", all)
	}
}
