package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"berth/internal/identity"
)

// An administrator pauses and resumes the journal with a reason. Other requests change nothing.
func TestPause_NeedsAnAdministratorAndAReason(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(identity.Noauth{})
	paused := func() string {
		p, err := e.Journal.Paused(t.Context())
		e.check(err)
		if p == nil {
			return ""
		}
		return p.Actor + ": " + p.Reason
	}
	for _, c := range []struct {
		path, token, reason string
		status              int
		paused              string // afterwards
		shown               string
	}{
		{"pause", "ann:demo", "upgrade", 403, "", ""},
		{"pause", "", "upgrade", 401, "", ""},
		{"pause", "admin", " ", 400, "", "Enter a reason"},
		{"pause", "admin", strings.Repeat("x", 1001), 400, "", "Enter a reason"},
		{"pause", "admin", "a\x00b", 400, "", "Enter a reason"},
		{"resume", "admin", "too early", 409, "", "The journal is not paused."},
		{"pause", "admin", " <b>upgrade</b> ", 303, "admin: <b>upgrade</b>", ""},
		{"pause", "admin", "again", 409, "admin: <b>upgrade</b>", "&lt;b&gt;upgrade"},
		{"resume", "ann:demo", "mine", 403, "admin: <b>upgrade</b>", ""},
		{"resume", "admin", "done", 303, "", ""},
	} {
		r, body := e.send(h, request{
			"POST",
			"/console/journal/" + c.path,
			url.Values{"reason": {c.reason}}.Encode(),
			browser(c.token),
		})
		if got := paused(); r.StatusCode != c.status || got != c.paused || !strings.Contains(body, c.shown) ||
			(c.status == http.StatusSeeOther) != (r.Header.Get("Location") == "/console/journal") {
			t.Errorf("%s by %q with the reason %.20q: got %d to %q and the pause %q, want %d, %q and the text %q:\n%s",
				c.path, c.token, c.reason, r.StatusCode, r.Header.Get("Location"), got, c.status, c.paused, c.shown, body)
		}
	}
	_, body := e.send(h, request{"GET", "/console/journal/pause", "", browser("admin")})
	for _, want := range []string{"&lt;b&gt;upgrade", "<td>resume</td><td>admin</td><td>done</td>"} {
		if !strings.Contains(body, want) {
			t.Errorf("the form does not contain %q:\n%s", want, body)
		}
	}
}
