package journal

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func reply(code int, body string) Answer { return Answer{Status: code, Body: []byte(body)} }

func TestAttempt_RequestsAndOutcome(t *testing.T) {
	t.Parallel()
	const data = `{"id":"id1","name":"web","status":"DOWN"}`
	same, other := reply(200, `{"port":{"id":"id1","name":"web","extra":1}}`), reply(200, `{"port":{"id":"id1","name":"old"}}`)
	reset := Answer{Trouble: Reset}
	for _, tt := range []struct {
		name    string
		op      Operation
		repeat  bool
		answers []Answer
		sent    string
		want    Kind
		unsure  bool
	}{
		{"create", Create, false, []Answer{reply(201, "")}, "POST", Done, false},
		{"update", Update, false, []Answer{reply(200, "")}, "PUT", Done, false},
		{"delete", Delete, false, []Answer{reply(204, "")}, "DELETE", Done, false},
		{"delete of a missing object", Delete, false, []Answer{reply(404, "")}, "DELETE", Done, false},
		{"create of an existing, equal object", Create, false, []Answer{reply(409, ""), same}, "POST GET", Done, false},
		{"create of an existing, different object", Create, false, []Answer{reply(409, ""), other, reply(200, "")}, "POST GET PUT", Done, false},
		{"create of an existing object, unreadable", Create, false, []Answer{reply(409, ""), reply(200, "<html>")}, "POST GET", Again, true},
		{"repeated delete, login page", Delete, true, []Answer{reply(200, "<html>")}, "GET", Again, true},
		{"create answered 409, read answered 404", Create, false, []Answer{reply(409, ""), reply(404, "")}, "POST GET", Refused, false},
		{"create of an existing object, read fails", Create, false, []Answer{reply(409, ""), reset}, "POST GET", Again, true},
		{"create of an existing object, replacement rejected", Create, false, []Answer{reply(409, ""), other, reply(409, "")}, "POST GET PUT", Refused, false},
		{"repeated create that was applied", Create, true, []Answer{same}, "GET", Done, false},
		{"repeated create that was not applied", Create, true, []Answer{reply(404, ""), reply(201, "")}, "GET POST", Done, false},
		{"repeated create of a different object", Create, true, []Answer{other, reply(200, "")}, "GET PUT", Done, false},
		{"repeated create, applied between read and write", Create, true, []Answer{reply(404, ""), reply(409, ""), same}, "GET POST GET", Done, false},
		{"repeated update that was applied", Update, true, []Answer{same}, "GET", Done, false},
		{"repeated update that was not applied", Update, true, []Answer{other, reply(200, "")}, "GET PUT", Done, false},
		{"repeated update of a missing object", Update, true, []Answer{reply(404, ""), reply(404, "")}, "GET PUT", Refused, false},
		{"repeated delete that was applied", Delete, true, []Answer{reply(404, "")}, "GET", Done, false},
		{"repeated delete that was not applied", Delete, true, []Answer{same, reply(204, "")}, "GET DELETE", Done, false},
		{"repeated, connection reset", Delete, true, []Answer{reset}, "GET", Again, true},
		{"repeated, unreachable", Update, true, []Answer{{Trouble: Unreachable}}, "GET", Again, true},
		{"repeated, overload", Create, true, []Answer{reply(503, "")}, "GET", Again, true},
		{"repeated, read rejected", Create, true, []Answer{reply(400, "")}, "GET", Refused, true},
		{"repeated, read without content", Create, true, []Answer{reply(204, "")}, "GET", Refused, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sent, o := runAttempt(t, Take{Entry: entry(tt.op, "port", data), Repeat: tt.repeat}, tt.answers)
			if d := cmp.Diff(tt.sent, sent); d != "" {
				t.Error(d)
			}
			if o.Kind != tt.want || o.Unsure != tt.unsure {
				t.Errorf("%+v", o)
			}
		})
	}
}

// runAttempt gives the responses to an attempt, and returns the methods of its requests.
func runAttempt(t *testing.T, claim Take, answers []Answer) (methods string, o Outcome) {
	t.Helper()
	a := Begin(claim)
	var sent []string
	for r, more := a.Next(); more; r, more = a.Next() {
		if len(sent) == len(answers) {
			t.Fatalf("unexpected request: %s %s", r.Method, r.Path)
		}
		a.Tell(answers[len(sent)])
		sent = append(sent, r.Method)
	}
	return strings.Join(sent, " "), a.Outcome()
}

// Any response of a controller: an attempt ends after few requests, with an outcome that the journal can store.
func FuzzAttempt(f *testing.F) {
	f.Add(409, []byte(`{"port":{"id":"id1"}}`), 200, "", uint8(0))
	f.Add(0, []byte{0xff, 0}, 404, "reset", uint8(1))
	f.Add(200, []byte(`{"port":{"a":1e99999}}`), 409, "", uint8(3))
	f.Add(200, []byte(`{"port":{"security_groups":[[[[`), 500, "timeout", uint8(5))
	f.Fuzz(func(t *testing.T, first int, body []byte, second int, trouble string, how uint8) {
		op := []Operation{Create, Update, Delete}[how%3]
		e := Entry{Seq: int64(how), Attempt: int(how), Object: Ref{Type: "port", ID: "id1"}, Operation: op,
			Data: json.RawMessage(`{"id":"id1","a":1,"security_groups":["x"],"n":null}`)}
		a := Begin(Take{Entry: e, Repeat: how%2 == 0})
		answers := []Answer{{Status: first, Body: body}, {Status: second, Body: body}, {Trouble: Trouble(trouble), Status: first, Detail: string(body)}}
		requests := 0
		for _, more := a.Next(); more; _, more = a.Next() {
			if requests == 4 {
				t.Fatal("the attempt does not end")
			}
			a.Tell(answers[requests%len(answers)])
			requests++
		}
		o := a.Outcome()
		switch o.Kind {
		case Done, Again, Refused, GivenUp:
		default:
			t.Fatalf("kind %q", o.Kind)
		}
		if o.Kind != Done && (o.After <= 0 && o.Kind != GivenUp || o.Reason == "") || o.After > maxRetryAfter {
			t.Errorf("%+v", o)
		}
		if !utf8.ValidString(o.Reason) || strings.ContainsRune(o.Reason, 0) || len(o.Reason) > 1000 {
			t.Errorf("reason %q", o.Reason)
		}
	})
}
