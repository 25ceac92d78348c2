package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"berth/internal/identity"
)

// keystone issues tokens to users with passwords. It records the logins.
type keystone struct {
	tokens
	token  string // for the password "s3cret"
	err    error  // of every login; nil: the password decides
	logins []identity.Login
}

func (k *keystone) IssueToken(_ context.Context, l identity.Login) (string, error) {
	k.logins = append(k.logins, l)
	switch {
	case k.err != nil:
		return "", k.err
	case l.Password != "s3cret":
		return "", identity.ErrUnauthenticated
	default:
		return k.token, nil
	}
}

// filled returns the form of the login with a password.
func filled(change func(url.Values)) url.Values {
	form := url.Values{
		"user":           {"ann"},
		"user_domain":    {"Default"},
		"password":       {"s3cret"},
		"project":        {"demo"},
		"project_domain": {"Default"},
		"next":           {"/console/ports"},
	}
	change(form)
	return form
}

func TestPasswordLogin_KeepsTheTokenOnly(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	k := &keystone{tokens: callersByToken, token: "ann"}
	h := e.console(k)
	w, body := e.send(h, request{"POST", "/console/login", filled(func(url.Values) {}).Encode(), browser("")})
	cookies := w.Cookies()
	if w.StatusCode != http.StatusSeeOther || w.Header.Get("Location") != "/console/ports" || len(cookies) != 1 {
		t.Fatalf("log in: got %d to %q with %d cookies, want 303 and one cookie:\n%s",
			w.StatusCode, w.Header.Get("Location"), len(cookies), body)
	}
	if c := cookies[0]; c.Value != encode("ann") || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie: got %s, want the token only, HttpOnly and SameSite=Strict", c)
	}
	want := identity.Login{
		User:          "ann",
		UserDomain:    "Default",
		Password:      "s3cret",
		Project:       "demo",
		ProjectDomain: "Default",
	}
	if len(k.logins) != 1 || k.logins[0] != want {
		t.Errorf("the logins at Keystone: got %d, want one with the fields of the form", len(k.logins))
	}
}

func TestPasswordLogin_RefusalsDoNotContainThePassword(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	for name, c := range map[string]struct {
		k      keystone
		field  string
		value  string
		status int
		asked  int // logins at Keystone
	}{
		"wrong password":     {keystone{}, "password", "guess-<b>", 401, 1},
		"no password":        {keystone{}, "password", "", 400, 0},
		"long password":      {keystone{}, "password", "guess-" + strings.Repeat("x", 4091), 400, 0},
		"NUL in a password":  {keystone{}, "password", "guess-\x00", 400, 0},
		"bytes":              {keystone{}, "password", "guess-\xff", 400, 0},
		"no user":            {keystone{}, "user", "", 400, 0},
		"long user":          {keystone{}, "user", strings.Repeat("x", 256), 400, 0},
		"NUL in a user":      {keystone{}, "user", "a\x00", 400, 0},
		"bytes in a project": {keystone{}, "project", "a\xff", 400, 0},
		"no domain":          {keystone{}, "project_domain", "", 400, 0},
		"markup":             {keystone{err: identity.ErrUnauthenticated}, "user", hostileName, 401, 1},
		"too many attempts":  {keystone{err: identity.ErrTooManyAttempts}, "user", "ann", 429, 1},
		"unavailable":        {keystone{err: identity.ErrUnavailable}, "user", "ann", 503, 1},
		"long token":         {keystone{token: strings.Repeat("t", 2901)}, "user", "ann", 400, 1},
		"no role":            {keystone{token: "loner"}, "user", "ann", 403, 1},
	} {
		t.Run(name, func(t *testing.T) {
			k := c.k
			k.tokens = tokens{"loner": {User: "loner", Project: "demo"}}
			form := filled(func(f url.Values) { f.Set(c.field, c.value) })
			for i, header := range []http.Header{browser(""), {"Sec-Fetch-Site": {"same-origin"}}} {
				w, body := e.send(e.console(&k), request{"POST", "/console/login", form.Encode(), header})
				if w.StatusCode != c.status || len(w.Cookies()) != 0 || len(k.logins) != c.asked*(i+1) {
					t.Errorf("got %d with %d cookies after %d logins, want %d, no cookie and %d logins",
						w.StatusCode, len(w.Cookies()), len(k.logins), c.status, c.asked*(i+1))
				}
				if strings.Contains(body, "s3cret") || strings.Contains(body, "guess-") || strings.Contains(body, "<img") {
					t.Errorf("the answer contains the password or markup:\n%s", body)
				}
			}
		})
	}
}

// Without Keystone, the form has no fields for a password, and fields for a password have no effect.
func TestPasswordLogin_OnlyWithKeystone(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	for name, c := range map[string]struct {
		id      identity.Authenticator
		offered bool
	}{
		"noauth":   {identity.Noauth{}, false},
		"keystone": {&keystone{tokens: callersByToken}, true},
	} {
		for _, path := range []string{"/console/login", "/console/"} {
			_, body := e.send(e.console(c.id), request{"GET", path, "", browser("")})
			if got := strings.Contains(body, `name="password"`); got != c.offered || !strings.Contains(body, `name="token"`) {
				t.Errorf("%s, GET %s: got a field for the password: %t, want %t, and a field for the token",
					name, path, got, c.offered)
			}
		}
	}
	w, _ := e.send(e.console(identity.Noauth{}), request{"POST", "/console/login", filled(func(url.Values) {}).Encode(), browser("")})
	if w.StatusCode != http.StatusBadRequest || len(w.Cookies()) != 0 {
		t.Errorf("a password without Keystone: got %d with %d cookies, want 400 and no cookie",
			w.StatusCode, len(w.Cookies()))
	}
}
