package journal

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func status(code int) Answer { return Answer{Status: code} }

func broken(tr Trouble) Answer { return Answer{Trouble: tr, Detail: "detail"} }

func TestEvaluate_OutcomeByResponse(t *testing.T) {
	t.Parallel()
	all := []Operation{Create, Update, Delete}
	for _, tt := range []struct {
		answer Answer
		ops    []Operation
		want   Kind
		unsure bool
	}{
		{status(200), all, Done, false},
		{status(201), all, Done, false},
		{status(204), all, Done, false},
		{status(202), all, Again, true},
		{status(206), all, Again, true},
		{status(301), all, Again, true},
		{status(302), all, Again, true},
		{status(304), all, Again, true},
		{status(0), all, Again, true},
		{status(400), all, Refused, false},
		{status(401), all, Again, false},
		{status(403), all, Again, false},
		{status(404), []Operation{Create, Update}, Refused, false},
		{status(404), []Operation{Delete}, Done, false},
		{status(405), all, Refused, false},
		{status(408), all, Again, true},
		{status(409), []Operation{Create}, Exists, true},
		{status(409), []Operation{Update, Delete}, Refused, false},
		{status(422), all, Refused, false},
		{status(429), all, Again, false},
		{status(442), all, Again, false},
		{status(500), all, Again, true},
		{status(502), all, Again, true},
		{status(503), all, Again, false},
		{status(504), all, Again, true},
		{status(599), all, Again, true},
		{broken(Unreachable), all, Again, false},
		{broken(TLS), all, Again, false},
		{broken(Open), all, Again, false},
		{broken(Timeout), all, Again, true},
		{broken(Reset), all, Again, true},
		{broken(Unusable), all, Refused, false},
	} {
		for _, op := range tt.ops {
			t.Run(fmt.Sprintf("%s %d%s", op, tt.answer.Status, tt.answer.Trouble), func(t *testing.T) {
				t.Parallel()
				got := Judge(Entry{Seq: 1, Attempt: 1, Operation: op}, tt.answer)
				if got.Kind != tt.want || got.Unsure != tt.unsure {
					t.Errorf("%+v, want %s, unsure %t", got, tt.want, tt.unsure)
				}
				if (got.Kind == Done) != (got.Reason == "") {
					t.Errorf("reason %q", got.Reason)
				}
				if got.Kind != Done && got.After <= 0 {
					t.Error("no back-off")
				}
			})
		}
	}
}

func TestEvaluate_SuccessThatIsNotFromTheControllerIsRetried(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op   Operation
		body string
		want Kind
	}{
		{Create, ``, Done},
		{Create, ` {"port":{"id":"p"}}`, Done},
		{Update, `{"port":{}}`, Done},
		{Update, " \n", Done},
		{Delete, ``, Done},
		{Delete, `{}`, Done},
		{Create, `<html>sign in</html>`, Again},
		{Create, `{}`, Again},
		{Create, `{"network":{}}`, Again},
		{Update, `{"port":{`, Again},
		{Update, `null`, Again},
		{Update, `ok`, Again},
		{Delete, `<html>sign in</html>`, Again},
	} {
		for _, code := range []int{200, 201, 204} {
			t.Run(fmt.Sprintf("%s %d %q", tt.op, code, tt.body), func(t *testing.T) {
				t.Parallel()
				o := Judge(entry(tt.op, "port", `{}`), Answer{Status: code, Body: []byte(tt.body)})
				if o.Kind != tt.want || o.Unsure != (tt.want == Again) {
					t.Errorf("%+v", o)
				}
			})
		}
	}
}

func TestEvaluate_EntryFailsAfterFiveUnexpectedResponses(t *testing.T) {
	t.Parallel()
	e := Entry{Operation: Create}
	for e.Failures < 4 {
		o := Judge(e, Answer{Status: http.StatusBadRequest})
		if o.Kind != Refused || o.State() != Pending || !o.Counts() {
			t.Fatalf("failure %d: %+v", e.Failures+1, o)
		}
		e.Failures++
	}
	if o := Judge(e, Answer{Status: http.StatusBadRequest}); o.Kind != GivenUp || o.State() != Failed || !o.Counts() {
		t.Errorf("the fifth: %+v", o)
	}
	if o := Judge(e, Answer{Status: http.StatusServiceUnavailable}); o.Kind != Again || o.Counts() {
		t.Errorf("an expected failure counted: %+v", o)
	}
	if o := Unsendable(errors.New("no")); o.State() != Failed {
		t.Errorf("an entry that cannot be sent: %+v", o)
	}
}

func TestEvaluate_RespectsRetryAfterUpToALimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ asked, want time.Duration }{{2 * time.Minute, 2 * time.Minute}, {24 * time.Hour, maxRetryAfter}} {
		for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			t.Run(fmt.Sprintf("%d %s", code, tt.asked), func(t *testing.T) {
				t.Parallel()
				if o := Judge(Entry{Attempt: 1}, Answer{Status: code, RetryAfter: tt.asked}); o.After != tt.want {
					t.Errorf("got %s", o.After)
				}
			})
		}
	}
}

func TestBackoff_GrowsIsBoundedAndSpread(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for seq := range int64(100) {
		for attempt := range 2000 {
			p := backoff(Entry{Seq: seq}, firstBackoff, attempt)
			if p < firstBackoff*3/4 || p > maxBackoff {
				t.Fatalf("entry %d, attempt %d: %s", seq, attempt, p)
			}
			if attempt == 7 {
				seen[p] = true
			}
		}
	}
	if len(seen) < 90 {
		t.Errorf("100 entries have only %d different back-offs", len(seen))
	}
	if a, b := backoff(Entry{Seq: 1}, firstBackoff, 1), backoff(Entry{Seq: 1}, firstBackoff, 5); b < 8*a {
		t.Errorf("no growth: %s, then %s", a, b)
	}
}

func TestEvaluate_ReasonIsOnePrintableLine(t *testing.T) {
	t.Parallel()
	body := "bad\x00\n\tthing \xff" + strings.Repeat("x", 5000)
	for _, a := range []Answer{{Status: 400, Body: []byte(body)}, {Trouble: Reset, Detail: body}} {
		reason := Judge(Entry{}, a).Reason
		if len(reason) > 300 || !utf8.ValidString(reason) || strings.ContainsAny(reason, "\x00\n\t") || !strings.Contains(reason, "thing ?xx") {
			t.Errorf("reason %q", reason)
		}
	}
}
