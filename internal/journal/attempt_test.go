package journal

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func reply(code int, body string) Response { return Response{Status: code, Body: []byte(body)} }

func TestAttempt_RequestsAndOutcome(t *testing.T) {
	t.Parallel()
	const data = `{"id":"id1","name":"web","status":"DOWN"}`
	same := reply(200, `{"port":{"id":"id1","name":"web","extra":1}}`)
	other := reply(200, `{"port":{"id":"id1","name":"old"}}`)
	reset := Response{Failure: ConnectionReset}
	for _, tt := range []struct {
		name    string
		op      Operation
		repeat  bool
		answers []Response
		sent    string
		want    OutcomeKind
		unsure  bool
	}{
		{"create", Create, false, []Response{reply(201, "")}, "POST", OutcomeDone, false},
		{"update", Update, false, []Response{reply(200, "")}, "PUT", OutcomeDone, false},
		{"delete", Delete, false, []Response{reply(204, "")}, "DELETE", OutcomeDone, false},
		{"delete of a missing object", Delete, false, []Response{reply(404, "")}, "DELETE", OutcomeDone, false},
		{"create of an existing, equal object", Create, false, []Response{reply(409, ""), same}, "POST GET", OutcomeDone, false},
		{"create of an existing, different object", Create, false, []Response{reply(409, ""), other, reply(200, "")}, "POST GET PUT", OutcomeDone, false},
		{"create of an existing object, unreadable", Create, false, []Response{reply(409, ""), reply(200, "<html>")}, "POST GET", OutcomeRetry, true},
		{"repeated delete, login page", Delete, true, []Response{reply(200, "<html>")}, "GET", OutcomeRetry, true},
		{"create answered 409, read answered 404", Create, false, []Response{reply(409, ""), reply(404, "")}, "POST GET", OutcomeRejected, false},
		{"create of an existing object, read fails", Create, false, []Response{reply(409, ""), reset}, "POST GET", OutcomeRetry, true},
		{"create of an existing object, replacement rejected", Create, false, []Response{reply(409, ""), other, reply(409, "")}, "POST GET PUT", OutcomeRejected, false},
		{"repeated create that was applied", Create, true, []Response{same}, "GET", OutcomeDone, false},
		{"repeated create that was not applied", Create, true, []Response{reply(404, ""), reply(201, "")}, "GET POST", OutcomeDone, false},
		{"repeated create of a different object", Create, true, []Response{other, reply(200, "")}, "GET PUT", OutcomeDone, false},
		{"repeated create, applied between read and write", Create, true, []Response{reply(404, ""), reply(409, ""), same}, "GET POST GET", OutcomeDone, false},
		{"repeated update that was applied", Update, true, []Response{same}, "GET", OutcomeDone, false},
		{"repeated update that was not applied", Update, true, []Response{other, reply(200, "")}, "GET PUT", OutcomeDone, false},
		{"repeated update of a missing object", Update, true, []Response{reply(404, ""), reply(404, "")}, "GET PUT", OutcomeRejected, false},
		{"repeated delete that was applied", Delete, true, []Response{reply(404, "")}, "GET", OutcomeDone, false},
		{"repeated delete that was not applied", Delete, true, []Response{same, reply(204, "")}, "GET DELETE", OutcomeDone, false},
		{"repeated, connection reset", Delete, true, []Response{reset}, "GET", OutcomeRetry, true},
		{"repeated, unreachable", Update, true, []Response{{Failure: Unreachable}}, "GET", OutcomeRetry, true},
		{"repeated, overload", Create, true, []Response{reply(503, "")}, "GET", OutcomeRetry, true},
		{"repeated, read fails while other writes are accepted", Create, true, []Response{{Status: 500, AcceptsOthers: true}}, "GET", OutcomeRejected, true},
		{"repeated, overload of the read of this object", Create, true, []Response{{Status: 503, AcceptsOthers: true}}, "GET", OutcomeRejected, true},
		{"repeated, read rejected", Create, true, []Response{reply(400, "")}, "GET", OutcomeRejected, true},
		{"repeated, read without content", Create, true, []Response{reply(204, "")}, "GET", OutcomeRejected, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sent, o := runAttempt(t,
				ClaimResult{Entry: entry(tt.op, "port", data), MaybeApplied: tt.repeat}, tt.answers)
			if d := cmp.Diff(tt.sent, sent); d != "" {
				t.Errorf(
					"run an attempt with these responses: methods of its requests differ (-want +got):\n%s",
					d,
				)
			}
			if o.Kind != tt.want || o.MaybeApplied != tt.unsure {
				t.Errorf(
					"run an attempt with these responses: got outcome %+v, want kind %s and MaybeApplied %t",
					o, tt.want, tt.unsure,
				)
			}
		})
	}
}

// An update of a pool makes the controller drop the members of the pool.
func TestAttempt_CreatesTheMembersOfAPoolAgain(t *testing.T) {
	t.Parallel()
	const data = `{"id":"id1","name":"web","members":[]}`
	members := []Change{
		{Object: Ref{Type: "member", ID: "m"}, Data: json.RawMessage(`{"id":"m","pool_id":"id1"}`)},
	}
	pool := reply(200, `{"pool":{"id":"id1","name":"web","members":[]}}`)
	old := reply(200, `{"pool":{"id":"id1","name":"old"}}`)
	made := reply(201, `{"members":[{"id":"m"}]}`)
	for _, tt := range []struct {
		name    string
		op      Operation
		repeat  bool
		nested  []Change
		answers []Response
		sent    string
		want    OutcomeKind
		unsure  bool
	}{
		{"update", Update, false, members, []Response{pool, made}, "PUT POST", OutcomeDone, false},
		{"update of a pool without members", Update, false, nil, []Response{pool}, "PUT", OutcomeDone, false},
		{"create", Create, false, members, []Response{reply(201, "")}, "POST", OutcomeDone, false},
		{"create of an existing, different pool", Create, false, members, []Response{reply(409, ""), old, pool, made}, "POST GET PUT POST", OutcomeDone, false},
		{"repeated update that was applied", Update, true, members, []Response{pool, made}, "GET POST", OutcomeDone, false},
		{"the controller kept the members", Update, false, members, []Response{pool, reply(409, "")}, "PUT POST", OutcomeDone, false},
		{"the members are not created", Update, false, members, []Response{pool, reply(500, "")}, "PUT POST", OutcomeRetry, true},
		{"the members are rejected", Update, false, members, []Response{pool, reply(400, "")}, "PUT POST", OutcomeRejected, true},
		{"the response is from a login page", Update, false, members, []Response{pool, reply(200, "<html>")}, "PUT POST", OutcomeRetry, true},
		{"the update fails", Update, false, members, []Response{reply(500, "")}, "PUT", OutcomeRetry, true},
		{"delete", Delete, true, members, []Response{reply(404, "")}, "GET", OutcomeDone, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sent, o := runAttempt(
				t,
				ClaimResult{Entry: entry(tt.op, "pool", data), MaybeApplied: tt.repeat, Nested: tt.nested},
				tt.answers,
			)
			if d := cmp.Diff(tt.sent, sent); d != "" {
				t.Errorf(
					"run an attempt with these responses: methods of its requests differ (-want +got):\n%s",
					d,
				)
			}
			if o.Kind != tt.want || o.MaybeApplied != tt.unsure {
				t.Errorf(
					"run an attempt with these responses: got outcome %+v, want kind %s and MaybeApplied %t",
					o, tt.want, tt.unsure,
				)
			}
		})
	}
}

func TestRequest_OfAPoolHasNoMembers(t *testing.T) {
	t.Parallel()
	e := entry(Update, "pool", `{"id":"id1","name":"web","members":[{"id":"other"}]}`)
	r, err := WriteRequest(e)
	if err != nil || strings.Contains(string(r.Body), "members") {
		t.Errorf(
			"request for the update of a pool: got %s %s %s, error %v; want a body without members",
			r.Method, r.Path, r.Body, err,
		)
	}
	r, err = nestedRequest(e, []Change{
		{
			Object: Ref{Type: "member", ID: "m"},
			Data:   json.RawMessage(`{"id":"m","pool_id":"id1","weight":3}`),
		},
	})
	want := Request{
		Method: "POST",
		Path:   "/lbaas/pools/id1/members",
		Body:   json.RawMessage(`{"members":[{"id":"m","pool_id":"id1","weight":3}]}`),
	}
	if d := cmp.Diff(want, r); err != nil || d != "" {
		t.Errorf("request for the members of a pool: got error %v; request (-want +got):\n%s", err, d)
	}
}

// runAttempt runs an attempt with the given responses, and returns the methods of its requests and its
// outcome.
func runAttempt(t *testing.T, claim ClaimResult, answers []Response) (methods string, o Outcome) {
	t.Helper()
	a := BeginAttempt(claim, DefaultMaxFailures)
	var sent []string
	for r, more := a.NextRequest(); more; r, more = a.NextRequest() {
		if len(sent) == len(answers) {
			t.Fatalf("run an attempt with these responses: it sends a further request %s %s, want none",
				r.Method, r.Path)
		}
		a.HandleResponse(answers[len(sent)])
		sent = append(sent, r.Method)
	}
	return strings.Join(sent, " "), a.Outcome()
}

// FuzzAttempt checks that an attempt ends after a few requests, whatever the controller answers, with an
// outcome that the journal can store.
func FuzzAttempt(f *testing.F) {
	f.Add(409, []byte(`{"port":{"id":"id1"}}`), 200, "", uint8(0))
	f.Add(0, []byte{0xff, 0}, 404, "reset", uint8(1))
	f.Add(200, []byte(`{"port":{"a":1e99999}}`), 409, "", uint8(3))
	f.Add(200, []byte(`{"port":{"security_groups":[[[[`), 500, "timeout", uint8(5))
	f.Fuzz(func(t *testing.T, first int, body []byte, second int, trouble string, how uint8) {
		op := []Operation{Create, Update, Delete}[how%3]
		e := Entry{
			Seq:       int64(how),
			Attempt:   int(how),
			Object:    Ref{Type: "port", ID: "id1"},
			Operation: op,
			Data:      json.RawMessage(`{"id":"id1","a":1,"security_groups":["x"],"n":null}`),
		}
		a := BeginAttempt(ClaimResult{Entry: e, MaybeApplied: how%2 == 0}, DefaultMaxFailures)
		answers := []Response{
			{Status: first, Body: body},
			{Status: second, Body: body},
			{Failure: TransportFailure(trouble), Status: first, Detail: string(body)},
		}
		requests := 0
		for _, more := a.NextRequest(); more; _, more = a.NextRequest() {
			if requests == 4 {
				t.Fatal("run an attempt with random responses: it sends a fifth request, want at most four")
			}
			a.HandleResponse(answers[requests%len(answers)])
			requests++
		}
		o := a.Outcome()
		switch o.Kind {
		case OutcomeDone, OutcomeRetry, OutcomeRejected, OutcomeFailed:
		default:
			t.Fatalf(
				"run an attempt with random responses: got an outcome of kind %q, want done, again, refused or given-up",
				o.Kind,
			)
		}
		if o.Kind != OutcomeDone && (o.RetryAfter <= 0 && o.Kind != OutcomeFailed || o.Reason == "") ||
			o.RetryAfter > maxRetryAfter {
			t.Errorf(
				"run an attempt with random responses: got outcome %+v, want a reason and a bounded back-off unless its kind is done",
				o,
			)
		}
		if !utf8.ValidString(o.Reason) || strings.ContainsRune(o.Reason, 0) || len(o.Reason) > 1000 {
			t.Errorf(
				"run an attempt with random responses: got the reason %q, want at most 1,000 bytes of valid UTF-8 without NUL",
				o.Reason,
			)
		}
	})
}
