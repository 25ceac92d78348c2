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
	Next      string // path of the page to show after the login
	Problem   string // why the previous login failed; empty: no login has failed
	Passwords bool   // the page offers the login with a password
	Names     loginNames
}

// loginNames are the fields of a login with a password, without the password.
type loginNames struct{ User, UserDomain, Project, ProjectDomain string }

// maxLoginName is the maximum length of each name in the form, in bytes. It is Keystone's limit for the names
// of users.
const maxLoginName = 255

// maxPassword is the maximum length of a password in the form, in bytes. It is Keystone's default limit.
const maxPassword = 4096

// issuer returns what issues tokens for passwords, or nil if berth offers no login with a password.
func (c *handler) issuer() identity.Issuer {
	issuer, _ := c.Identity.(identity.Issuer)
	return issuer
}

// loginDocument renders the login form.
func (c *handler) loginDocument(r *http.Request, next, problem string, names loginNames) []byte {
	return c.document(r, "Log in", "login", loginView{next, problem, c.issuer() != nil, names})
}

func (c *handler) showLogin(r *http.Request) (int, any, error) {
	next := localPath(r, r.URL.Query().Get("next"))
	return http.StatusOK, c.loginDocument(r, next, "", defaultDomains), nil
}

// defaultDomains are the names in an empty form.
var defaultDomains = loginNames{UserDomain: "Default", ProjectDomain: "Default"}

// login checks the token in the form, or the token that Keystone issues for the password in the form. If it
// is the token of a caller for whom the console has pages, login sets the cookie and redirects to the page
// that the caller wanted to see.
func (c *handler) login(r *http.Request) (int, any, error) {
	if err := r.ParseForm(); err != nil {
		return 0, nil, osapi.BodyError(err, "The form is malformed.")
	}
	next, names := localPath(r, r.PostForm.Get("next")), defaultDomains
	enter, refused := c.enteredToken, "The token is not valid, or it has expired."
	if c.issuer() != nil && r.PostForm.Has("user") {
		names = namesIn(r)
		enter, refused = c.issuedToken, "Keystone refuses the user name, the password or the project."
	}
	refuse := func(status int, problem string) (int, any, error) {
		if !isBrowser(r) {
			return 0, nil, osapi.Fault(status, "", "%s", problem)
		}
		return status, c.loginDocument(r, next, problem, names), nil
	}
	token, problem, err := enter(r)
	if problem != "" {
		return refuse(http.StatusBadRequest, problem)
	}
	var caller identity.Caller
	if err == nil {
		caller, err = c.cookies.withToken(r, token)
	}
	switch {
	case errors.Is(err, identity.ErrUnauthenticated):
		return refuse(http.StatusUnauthorized, refused)
	case err != nil:
		return 0, nil, err
	case !caller.Admin() && !c.mayReadProject(caller):
		return refuse(http.StatusForbidden, needsRole)
	}
	setCookie(r, token)
	osapi.Header(r.Context()).Set("Location", next)
	return http.StatusSeeOther, nil, nil
}

// enteredToken returns the token in the form. If the form has none, problem says what to enter.
func (c *handler) enteredToken(r *http.Request) (token, problem string, err error) {
	token = strings.TrimSpace(r.PostForm.Get("token"))
	if token == "" || len(token) > maxCookieToken {
		return "", "Enter a token of 1 to 2900 characters.", nil
	}
	return token, "", nil
}

// issuedToken returns a new token for the user name and the password in the form. If the form is incomplete,
// problem says what to enter.
func (c *handler) issuedToken(r *http.Request) (token, problem string, err error) {
	names, password := namesIn(r), r.PostForm.Get("password")
	for _, name := range []string{names.User, names.UserDomain, names.Project, names.ProjectDomain} {
		if name == "" || len(name) > maxLoginName || !osapi.ValidText(name) {
			return "", "Enter a user name, a project and their domains, each of 1 to 255 bytes.", nil
		}
	}
	if password == "" || len(password) > maxPassword || !osapi.ValidText(password) {
		return "", "Enter a password of 1 to 4096 bytes.", nil
	}
	token, err = c.issuer().IssueToken(r.Context(), identity.Login{
		User:          names.User,
		UserDomain:    names.UserDomain,
		Password:      password,
		Project:       names.Project,
		ProjectDomain: names.ProjectDomain,
	})
	if len(token) > maxCookieToken {
		return "", "The token of Keystone is longer than 2900 characters, so a cookie cannot contain it.", nil
	}
	return token, "", err
}

// namesIn returns the names in the form.
func namesIn(r *http.Request) loginNames {
	return loginNames{
		User:          r.PostForm.Get("user"),
		UserDomain:    r.PostForm.Get("user_domain"),
		Project:       r.PostForm.Get("project"),
		ProjectDomain: r.PostForm.Get("project_domain"),
	}
}

// logout removes the cookie and redirects to the login form. The token itself stays valid.
func (c *handler) logout(r *http.Request) (int, any, error) {
	setCookie(r, "")
	osapi.Header(r.Context()).Set("Location", basePath(r)+"/login")
	return http.StatusSeeOther, nil, nil
}

// maxNext is the maximum length of the path to which the login form leads back, in bytes. The form repeats
// the path for clients without credentials, and no page of the console links to a longer one.
const maxNext = 1024

// localPath returns the path if it is a path of the console, otherwise the path of the first page. A path of
// another site would let this site use the login form of the console for a redirect.
func localPath(r *http.Request, path string) string {
	base := basePath(r)
	if len(path) > maxNext {
		return base + "/"
	}
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || strings.ContainsAny(path, "\\\r\n\t") ||
		slices.Contains(strings.Split(u.Path, "/"), "..") ||
		path != base && !strings.HasPrefix(path, base+"/") {
		return base + "/"
	}
	return path
}
