package blazar

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/lease"
	"berth/internal/store/storetest"
)

func TestLease_BelongsToItsProject(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	path := "/v1/leases/" + s.lease("alice:red", "gold", 1, 2)["id"].(string)
	for _, c := range []struct {
		token, method, path, body string
		status                    int
	}{
		{"bob:blue", "GET", path, "", 403},
		{"bob:blue", "PUT", path, `{"name":"x"}`, 403},
		{"bob:blue", "DELETE", path, "", 403},
		{"rita:red", "GET", path, "", 200},
		{"admin", "GET", path, "", 200},
		{"notused", "GET", path, "", 200},
		{"alice:red", "GET", "/v1/os-hosts", "", 403},
		{"alice:red", "POST", "/v1/os-hosts", `{"name":"x"}`, 403},
		{"alice:red", "GET", "/v1/os-hosts/allocations", "", 403},
		{"alice:red", "GET", "/v1/os-hosts/properties", "", 403},
		{"loner", "GET", "/v1/leases", "", 403},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			if a := s.as(c.token, c.method, c.path, c.body); a.status != c.status {
				t.Errorf("request with the token %s, %s %s: want status %d, got %d %s",
					c.token, c.method, c.path, c.status, a.status, a.raw)
			}
		})
	}
	reader := s.as("rita:red", "PUT", path, `{"name":"x"}`, "X-Roles: reader")
	if reader.status != 403 || !strings.Contains(reader.raw, "blazar:leases:put") {
		t.Errorf("update a lease as a reader: got %d %s, want 403 with the rule blazar:leases:put",
			reader.status, reader.raw)
	}
	for token, want := range map[string]int{"alice:red": 1, "bob:blue": 0, "admin": 1} {
		t.Run(token, func(t *testing.T) {
			if all := s.as(token, "GET", "/v1/leases.json", "").body["leases"].([]any); len(all) != want {
				t.Errorf("list leases as %s: got %d leases, want %d", token, len(all), want)
			}
		})
	}
}

func TestLease_NamesOnlyLeasesAndHostsThatTheCallerSees(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	first := s.lease("alice:red", "merger with ACME", 1, 2)["id"].(string)
	second := s.lease("bob:blue", "gold", 2, 3)["id"].(string)
	third := s.lease("alice:red", "rollout", 3, 4)["id"].(string)
	for _, id := range []string{second, third} {
		storetest.Exec(t, s.db, `update lease set start_at = now() where id = $1`, id)
		storetest.Exec(t, s.db,
			`update event set at = now() where lease_id = $1 and event_type = 'start_lease'`, id)
	}
	for _, c := range []struct {
		token, lease   string
		shown, missing []string
	}{
		{"bob:blue", second, []string{"waits for another lease to leave a host since"}, []string{"merger", first, "cmp-1"}},
		{"alice:red", third, []string{"waits for lease merger with ACME (" + first + ") to leave a host since", "and for another lease to leave a host since"}, []string{"gold", second, "cmp-1"}},
		{"admin", third, []string{"merger with ACME", first, "gold", second, "to leave host cmp-1 since"}, nil},
	} {
		a := s.as(c.token, "GET", "/v1/leases/"+c.lease, "")
		if a.status != 200 {
			t.Errorf("show a lease as %s: got %d %s, want 200", c.token, a.status, a.raw)
		}
		for _, text := range c.shown {
			if !strings.Contains(a.raw, text) {
				t.Errorf("show a lease that waits as %s: got %s, want %q", c.token, a.raw, text)
			}
		}
		for _, text := range c.missing {
			if strings.Contains(a.raw, text) {
				t.Errorf("show a lease that waits as %s: got %s, which contains %q", c.token, a.raw, text)
			}
		}
	}
}

// The errors of calls to Nova quote its address, its hosts, and servers and reservations of other projects.
func TestLease_OnlyThoseWhoSeeHostsReadTheErrorsOfCalls(t *testing.T) {
	t.Parallel()
	const call, secret = "GET /v2.1/servers/detail?host=cmp-1", "server 7 of project blue is on host cmp-1"
	s := newService(t, "cmp-1")
	starting := s.lease("alice:red", "starting", 1, 2)["id"].(string)
	failed := s.lease("alice:red", "failed", 2, 3)["id"].(string)
	for _, id := range []string{starting, failed} {
		storetest.Exec(t, s.db, `
			insert into reservation_failure (reservation_id, party, call, error)
			select id, 'nova', $2, $3 from reservation where lease_id = $1`, id, call, secret)
	}
	storetest.Exec(t, s.db, `
		with l as (update lease set status = 'STARTING' where id = $1)
		update event set status = 'IN_PROGRESS' where lease_id = $1 and event_type = 'start_lease'`, starting)
	storetest.Exec(t, s.db, `
		with l as (update lease set status = 'ERROR' where id = $1),
			e as (update event set status = 'ERROR' where lease_id = $1 and event_type <> 'before_end_lease')
		update reservation set status = 'error', last_error = $2 where lease_id = $1`, failed, secret)
	reader := LeaseReader{s.store.Lease, policy.MustOpen(Policy...)}
	for _, id := range []string{starting, failed} {
		for token, sees := range map[string]bool{"admin": true, "alice:red": false} {
			a := s.as(token, "GET", "/v1/leases/"+id, "")
			if got := strings.Contains(a.raw, secret); got != sees || a.status != 200 {
				t.Errorf("show a lease with a failed call as %s: got %d %s; want the error in it: %t",
					token, a.status, a.raw, sees)
			}
			if !sees && (strings.Contains(a.raw, "cmp-1") || !strings.Contains(a.raw, `"party":"nova"`)) {
				t.Errorf("show a lease with a failed call as %s: got %s, want the party and no host", token, a.raw)
			}
		}
		l, err := reader.Lease(t.Context(),
			identity.Caller{User: "alice", Project: "red", Roles: []string{"member"}}, uuid.MustParse(id))
		sentence, _ := lease.Explain(l, time.Now())
		if texts := fmt.Sprint(sentence, l.FailedCalls(), l.Reservations[0].LastError); err != nil ||
			len(l.FailedCalls()) != 1 || strings.Contains(texts, "cmp-1") {
			t.Errorf("read a lease with a failed call for the console: got %s, %v; want no host", texts, err)
		}
	}
}

func TestLease_ListPages(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	var ids []string
	for i := range 5 {
		token := "alice:red"
		if i == 2 {
			token = "bob:blue"
		}
		ids = append(ids, s.lease(token, "gold", i, i+1)["id"].(string))
	}
	for _, c := range []struct {
		token, query string
		want         []int
	}{
		{"admin", "", []int{0, 1, 2, 3, 4}},
		{"admin", "?limit=2", []int{0, 1}},
		{"admin", "?limit=2&marker=" + ids[1], []int{2, 3}},
		{"admin", "?limit=9&marker=" + ids[3], []int{4}},
		{"admin", "?marker=" + ids[4], nil},
		{"admin", "?sort=name&limit=&marker=", []int{0, 1, 2, 3, 4}},
		{"alice:red", "?limit=2&marker=" + ids[1], []int{3, 4}},
		{"bob:blue", "?limit=2", []int{2}},
	} {
		t.Run(c.token, func(t *testing.T) {
			var got []int
			for _, l := range s.as(c.token, "GET", "/v1/leases"+c.query, "").body["leases"].([]any) {
				got = append(got, slices.Index(ids, l.(map[string]any)["id"].(string)))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("indexes of the leases that %s lists with the query %q (-want +got):\n%s",
					c.token, c.query, d)
			}
		})
	}
	for _, query := range []string{"?limit=0", "?limit=-1", "?limit=many", "?limit=99999999999999999999", "?marker=x", "?marker=" + uuid.NewString()} {
		t.Run(query, func(t *testing.T) {
			s.expect(400, "GET", "/v1/leases"+query, "")
		})
	}
	if a := s.as("bob:blue", "GET", "/v1/leases?marker="+ids[0], ""); a.status != 400 {
		t.Errorf("list leases with the marker of another project's lease: got %d %s, want 400",
			a.status, a.raw)
	}
}

func TestLease_DeleteWaitsForTheDeletion(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	path := "/v1/leases/" + s.lease("admin", "gold", 1, 2)["id"].(string)
	a := s.expect(204, "DELETE", path, "")
	if a.raw != "" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("DELETE of a lease: got headers %v and body %q, want JSON's Content-Type and no body",
			a.header, a.raw)
	}
	s.expect(404, "DELETE", path, "")

	id := s.started()
	path = "/v1/leases/" + id.String()
	s.serve(1)
	slow := s.expect(202, "DELETE", path, "") // no worker runs, so the deletion does not finish
	l := slow.body["lease"].(map[string]any)
	sentence := l["berth:why"].(map[string]any)["sentence"].(string)
	if !strings.Contains(sentence, "being deleted") {
		t.Errorf(
			"berth:why of a lease in deletion: got %s, want a sentence that the lease is being deleted",
			sentence,
		)
	}
	s.expect(409, "PUT", path, `{"name":"x"}`)

	s.serve(10 * time.Minute)
	storetest.Exec(s, s.db, `delete from note`)
	done := make(chan error, 1)
	go func() { done <- s.worker(id) }()
	s.expect(204, "DELETE", path, "")
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.expect(404, "GET", path, "")
}

// A deletion that does not end soon, because it waits for Nova or Neutron, costs the database few reads.
func TestDeletion_IsReadLessAndLessOften(t *testing.T) {
	t.Parallel()
	reads, waited, pause := 0, time.Duration(0), firstDeletionPause
	for waited < deletionWait {
		waited += pause
		reads++
		next := nextDeletionPause(pause)
		if next < pause || next > 2*pause {
			t.Errorf("pause after %s: got %s, want at least the same and at most twice as much", pause, next)
		}
		pause = next
	}
	if reads > 20 || pause != maxDeletionPause {
		t.Errorf("wait of %s for a deletion: got %d reads and the pause %s at the end, want at most 20 and %s",
			deletionWait, reads, pause, maxDeletionPause)
	}
}

// started creates a lease in the state STARTING.
func (s *service) started() uuid.UUID {
	s.Helper()
	id := uuid.MustParse(s.lease("admin", "gold", 1, 2)["id"].(string))
	storetest.Exec(s, s.db, `update lease set start_at = now() where id = $1`, id)
	storetest.Exec(s, s.db,
		`update event set at = now() where lease_id = $1 and event_type = 'start_lease'`, id)
	if _, err := s.store.Lease.BeginLease(s.Context(), id, lease.StepStart); err != nil {
		s.Fatal(err)
	}
	return id
}

// worker waits for the note of the request DELETE and then deletes the lease, as the lease's workflow does.
func (s *service) worker(id uuid.UUID) error {
	for {
		notes, err := s.store.Outbox.Claim(s.Context(), "", 1, time.Hour)
		if err != nil {
			return err
		}
		if len(notes) > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	l, err := s.store.Lease.BeginLease(s.Context(), id, lease.StepDelete)
	if err != nil {
		return err
	}
	for _, r := range l.Reservations {
		if err := s.store.Lease.ReleaseReservation(s.Context(), r.ID); err != nil {
			return err
		}
	}
	_, err = s.store.Lease.FinishLease(s.Context(), id, lease.StepDelete, nil)
	return err
}

func TestLease_JSON(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	a := s.as(
		"alice:red",
		"POST",
		"/v1/leases",
		`{"name":"gold","start_date":"2040-01-01 10:00","end_date":"2040-01-01 12:00",
		"reservations":[{"resource_type":"physical:host","min":1,"max":"2","hypervisor_properties":"[\">=\",\"$vcpus\",\"2\"]","resource_properties":""}],
		"events":[],"before_end_date":null}`,
	)
	if a.status != 201 || a.header.Get("Location") != "" {
		t.Fatalf("create a lease: got %d, headers %v, body %s; want 201 without Location",
			a.status, a.header, a.raw)
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
		return map[string]any{
			"lease_id":   id,
			"event_type": typ,
			"time":       at,
			"status":     "UNDONE",
			"updated_at": nil,
		}
	}
	want := map[string]any{
		"id":         id,
		"name":       "gold",
		"user_id":    "alice",
		"project_id": "red",
		"status":     "PENDING",
		"degraded":   false,
		"trust_id":   nil,
		"start_date": "2040-01-01T10:00:00.000000",
		"end_date":   "2040-01-01T12:00:00.000000",
		"updated_at": nil,
		"reservations": []any{
			map[string]any{
				"id":                    r["id"],
				"lease_id":              id,
				"resource_id":           r["id"],
				"resource_type":         "physical:host",
				"status":                "pending",
				"missing_resources":     false,
				"resources_changed":     false,
				"min":                   1.0,
				"max":                   2.0,
				"hypervisor_properties": `[">=","$vcpus","2"]`,
				"resource_properties":   "",
				"before_end":            "default",
				"updated_at":            nil,
			},
		},
		"events": []any{
			event("start_lease", "2040-01-01T10:00:00.000000"),
			event("before_end_lease", "2040-01-01T11:00:00.000000"),
			event("end_lease", "2040-01-01T12:00:00.000000"),
		},
	}
	why := l["berth:why"].(map[string]any)
	delete(l, "berth:why")
	if d := cmp.Diff(want, l); d != "" {
		t.Error(d)
	}
	if why["sentence"] != "PENDING: start_lease is next, at 2040-01-01T10:00:00Z." {
		t.Errorf("berth:why of a new lease: got %v, want a sentence that start_lease is next", why)
	}
	waiting := why["waiting"].([]any)[0].(map[string]any)
	if waiting["for"] != "start_lease" || waiting["deadline"] != "2040-01-01T10:00:00Z" ||
		waiting["since"] == nil {
		t.Errorf("waiting entity of a new lease: got %v, want start_lease with its time", waiting)
	}
	for _, path := range []string{"/v1/leases/" + id, "/v1/leases/" + id + ".json"} {
		t.Run(path, func(t *testing.T) {
			if got := s.expect(200, "GET", path, ""); got.body["lease"].(map[string]any)["name"] != "gold" {
				t.Errorf("read the lease: got %s, want the name gold", got.raw)
			}
		})
	}
}

func TestLease_DatesAreExactToTheSecond(t *testing.T) {
	t.Parallel()
	s := newService(t)
	a := s.expect(201, "POST", "/v1/leases",
		`{"name":"x","start_date":"2040-11-21T15:20:05+01:00","end_date":"2040-11-21T14:20:35.5Z"}`)
	l := a.body["lease"].(map[string]any)
	if l["start_date"] != "2040-11-21T14:20:05.000000" || l["end_date"] != "2040-11-21T14:20:35.500000" {
		t.Errorf(
			"dates of a lease that was requested with a time zone: got %v to %v, want the same times in UTC",
			l["start_date"],
			l["end_date"],
		)
	}
}

func TestLease_StartNowIsDueImmediately(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	body := strings.Replace(leaseBody("n", 0, 2), in(0), "now", 1)
	a := s.expect(201, "POST", "/v1/leases", body)
	l := a.body["lease"].(map[string]any)
	if !strings.HasSuffix(l["start_date"].(string), ":00.000000") {
		t.Errorf(
			"start_date of a lease that was requested with start_date now: got %v, want a full minute",
			l["start_date"],
		)
	}
	row, err := s.store.Lease.Lease(t.Context(), uuid.MustParse(l["id"].(string)))
	if err != nil || lease.Next(row, time.Now()).Step != lease.StepStart {
		t.Errorf(
			"read the row of a lease with start_date now: got %+v, error %v; want start_lease to be due",
			row,
			err,
		)
	}
}

func TestLease_Update(t *testing.T) {
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
		t.Run(c.body, func(t *testing.T) {
			a := s.as("alice:red", "PUT", path, c.body)
			if a.status != c.status {
				t.Errorf("PUT with the body %s: want status %d, got %d %s", c.body, c.status, a.status, a.raw)
			}
			if a.status == 200 && a.body["lease"].(map[string]any)["status"] != "PENDING" {
				t.Errorf("PUT with the body %s: got %s, want a lease with the status PENDING", c.body, a.raw)
			}
		})
	}
	l := s.expect(200, "GET", path, "").body["lease"].(map[string]any)
	if l["name"] != "silver" || l["project_id"] != "red" || l["status"] != "PENDING" {
		t.Errorf("the lease after all updates: got %v, want name silver, project red and PENDING", l)
	}
}

func TestLease_RefusedCreateWritesNothing(t *testing.T) {
	t.Parallel()
	s := newService(t, "cmp-1")
	with := func(reservation string) string {
		return `{"name":"l","start_date":"` + in(1) + `","end_date":"` + in(2) + `",` +
			`"reservations":[` + reservation + `]}`
	}
	host := `{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":"","resource_properties":""`
	for _, c := range []struct {
		name, body string
		status     int
		message    string // the whole message, or its beginning followed by …
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
		{"a long word as date", `{"name":"l","start_date":"x` + strings.Repeat("é", 120) + `","end_date":"now"}`, 400,
			"x" + strings.Repeat("é", 98) + "… is an invalid date. Required format: %Y-%m-%d %H:%M"},
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
		t.Run(c.name, func(t *testing.T) {
			a := s.expect(c.status, "POST", "/v1/leases", c.body, "Content-Type: application/json")
			message, _ := a.body["error_message"].(string)
			if begin, open := strings.CutSuffix(c.message, "…"); message != c.message &&
				!(open && strings.HasPrefix(message, begin)) {
				t.Errorf("POST /v1/leases with %s: got the message %q, want %q", c.name, message, c.message)
			}
		})
	}
	if a := s.expect(413, "POST", "/v1/leases", `{"name":"`+strings.Repeat("x", 1<<20)+`"}`); a.body["error"] != 413.0 {
		t.Errorf("POST /v1/leases with a body above one megabyte: got %s, want the error 413", a.raw)
	}
	if all := s.expect(200, "GET", "/v1/leases", "").body["leases"].([]any); len(all) != 0 {
		t.Errorf("leases after refused requests: got %v, want none", all)
	}
}
