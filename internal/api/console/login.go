package console

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"berth/internal/api/osapi"
	"berth/internal/identity"
)

// cookieName is the name of the cookie that contains the token of the operator.
const cookieName = "berth_console"

// maxCookieToken is the maximum length of a token in the cookie, in bytes. Browsers refuse cookies of more
// than 4096 bytes.
const maxCookieToken = 2900

// cookies authenticates a request with the token in its cookie, if the request has no header X-Auth-Token.
// The console keeps no session: each request validates the token again, as each request of an API does.
type cookies struct{ identity.Authenticator }

// Authenticate implements identity.Authenticator.
func (c cookies) Authenticate(r *http.Request) (identity.Caller, error) {
	if r.Header.Get("X-Auth-Token") == "" {
		cookie, err := r.Cookie(cookieName)
		if err != nil {
			return c.Authenticator.Authenticate(r)
		}
		token, err := base64.RawURLEncoding.DecodeString(cookie.Value)
		if err != nil || len(token) == 0 {
			return identity.Caller{}, identity.ErrUnauthenticated
		}
		return c.withToken(r, string(token))
	}
	return c.Authenticator.Authenticate(r)
}

// withToken authenticates a request as if it had the given token. Headers of the request that name an
// identity do not count.
func (c cookies) withToken(r *http.Request, token string) (identity.Caller, error) {
	if !osapi.ValidText(token) || strings.ContainsAny(token, "\r\n") {
		return identity.Caller{}, identity.ErrUnauthenticated
	}
	r = r.Clone(r.Context())
	r.Header = http.Header{"X-Auth-Token": {token}}
	return c.Authenticator.Authenticate(r)
}

// setCookie sets the cookie to the given token; an empty token removes the cookie. No cache may keep the
// answer.
func setCookie(r *http.Request, token string) {
	cookie := http.Cookie{
		Name:     cookieName,
		Value:    base64.RawURLEncoding.EncodeToString([]byte(token)),
		Path:     basePath(r),
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
		Secure:   strings.HasPrefix(osapi.BaseURL(r), "https:"),
	}
	if token == "" {
		cookie.MaxAge = -1
	}
	header := osapi.Header(r.Context())
	header.Add("Set-Cookie", cookie.String())
	header.Set("Cache-Control", "no-store")
}

// loginView is the content of the login form.
type loginView struct {
	Next    string // path of the page to show after the login
	Problem string // why the previous login failed; empty: no login has failed
}

func (c *handler) showLogin(r *http.Request) (int, any, error) {
	view := loginView{Next: localPath(r, r.URL.Query().Get("next"))}
	return http.StatusOK, c.document(r, "Log in", "login", view), nil
}

// login checks the token in the form. If it is the token of a caller for whom the console has pages, login
// sets the cookie and redirects to the page that the caller wanted to see.
func (c *handler) login(r *http.Request) (int, any, error) {
	if err := r.ParseForm(); err != nil {
		return 0, nil, osapi.BodyError(err, "The form is malformed.")
	}
	next, token := localPath(r, r.PostForm.Get("next")), strings.TrimSpace(r.PostForm.Get("token"))
	refuse := func(status int, problem string) (int, any, error) {
		if !isBrowser(r) {
			return 0, nil, osapi.Fault(status, "", "%s", problem)
		}
		return status, c.document(r, "Log in", "login", loginView{next, problem}), nil
	}
	if token == "" || len(token) > maxCookieToken {
		return refuse(http.StatusBadRequest, "Enter a token of 1 to 2900 characters.")
	}
	caller, err := c.cookies.withToken(r, token)
	switch {
	case errors.Is(err, identity.ErrUnauthenticated):
		return refuse(http.StatusUnauthorized, "The token is not valid, or it has expired.")
	case err != nil:
		return 0, nil, err
	case !caller.Admin() && !c.mayReadProject(caller):
		return refuse(http.StatusForbidden, needsRole)
	}
	setCookie(r, token)
	osapi.Header(r.Context()).Set("Location", next)
	return http.StatusSeeOther, nil, nil
}

// logout removes the cookie and redirects to the login form. The token itself stays valid.
func (c *handler) logout(r *http.Request) (int, any, error) {
	setCookie(r, "")
	osapi.Header(r.Context()).Set("Location", basePath(r)+"/login")
	return http.StatusSeeOther, nil, nil
}

// localPath returns the path if it is a path of the console, otherwise the path of the first page. A path of
// another site would let this site use the login form of the console for a redirect.
func localPath(r *http.Request, path string) string {
	base := basePath(r)
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || strings.ContainsAny(path, "\\\r\n\t") ||
		slices.Contains(strings.Split(u.Path, "/"), "..") ||
		path != base && !strings.HasPrefix(path, base+"/") {
		return base + "/"
	}
	return path
}
