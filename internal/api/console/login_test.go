package console_test

import (
	"net/http"
	"testing"

	"berth/internal/identity"
)

func TestLogin_NoCacheKeepsAnAnswerWithACookie(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(identity.Noauth{})
	for name, r := range map[string]request{
		"log in":  {"POST", "/console/login", "token=admin", browser("")},
		"log out": {"POST", "/console/logout", "", browser("admin")},
	} {
		answer, _ := e.send(h, r)
		if len(answer.Cookies()) != 1 || answer.StatusCode != http.StatusSeeOther ||
			answer.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %s with %d cookies and Cache-Control %q, want 303 with one cookie and no-store",
				name, answer.Status, len(answer.Cookies()), answer.Header.Get("Cache-Control"))
		}
	}
}
