package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/store/db"
)

// page is one page of the console.
type page struct {
	path     string
	nav      string // name in the navigation; empty: the page is not in the navigation
	title    string
	template string
	load     func(ctx context.Context, q query) (any, error) // reads the content for the template
}

// query is what a page reads from its request.
type query struct {
	path   func(name string) string // the value of a path segment
	values url.Values
	base   string // path of the console
	caller identity.Caller
}

func queryOf(r *http.Request) query {
	return query{r.PathValue, r.URL.Query(), basePath(r), identity.From(r.Context())}
}

// titled is implemented by contents whose page has a title of its own.
type titled interface{ title() string }

// frame is the data of the template of a whole document.
type frame struct {
	Base    string
	Title   string
	Nav     []navLink
	User    string // empty: nobody is logged in
	Admin   bool   // the user is an administrator
	Stream  string // path of the stream; empty: the page has no stream
	Content template.HTML
}

type navLink struct {
	Path, Name string
	Current    bool
}

// securityHeaders are the headers of each document. The policy allows no inline script or style, no content
// of other sites, and no frame.
var securityHeaders = map[string]string{
	"Content-Type": "text/html; charset=utf-8",
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
		"base-uri 'none'; frame-ancestors 'none'",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-store",
	"Vary":                         "Accept",
}

// show returns the handler of a page for administrators. A request for text/event-stream gets the stream of
// the page, every other request the document.
func (c *handler) show(p page) osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		return c.showLive(r, p, streamed{
			live:    c.Live,
			mayRead: identity.Caller.Admin,
		})
	}
}

// showLive answers with the stream of a page if the request asks for it, otherwise with the document. The
// parameter `s` has no function `render`, and its key is what the content depends on besides the URL.
func (c *handler) showLive(r *http.Request, p page, s streamed) (int, any, error) {
	q := queryOf(r)
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		if !q.caller.Admin() { // a member may ask for the stream of an object that does not exist
			if _, _, err := c.render(r.Context(), p, q); err != nil {
				return 0, nil, err
			}
		}
		setHeaders(r)
		q.values.Del("seen")
		q.path = pathValues(p.path, r)
		s.key += " " + q.base + r.URL.Path + "?" + q.values.Encode()
		reserved := q.caller.Admin()
		s.render = func(ctx context.Context) ([]byte, error) {
			if reserved {
				ctx = db.WithReserve(ctx)
			}
			_, content, err := c.render(ctx, p, q)
			return content, err
		}
		return c.stream(r, s)
	}
	title, content, err := c.render(r.Context(), p, q)
	if err != nil {
		return 0, nil, err
	}
	f := c.frameOf(r, title).with(content)
	q.values.Set("seen", hashOf(content))
	f.Stream = q.base + strings.TrimPrefix(r.URL.EscapedPath(), prefix) + "?" + q.values.Encode()
	return http.StatusOK, c.execute(r, f), nil
}

// pathValues returns a function that returns the values of the path segments of a request. The function may
// be used after the request.
func pathValues(pattern string, r *http.Request) func(string) string {
	values := map[string]string{}
	for part := range strings.SplitSeq(pattern, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			values[name] = r.PathValue(name)
		}
	}
	return func(name string) string { return values[name] }
}

// render reads and renders the content of a page, without the frame.
func (c *handler) render(ctx context.Context, p page, q query) (title string, content []byte, err error) {
	view, err := p.load(ctx, q)
	if err != nil {
		return "", nil, err
	}
	title = p.title
	if t, ok := view.(titled); ok {
		title = t.title()
	}
	var b bytes.Buffer
	err = templates.ExecuteTemplate(&b, p.template, struct {
		Base string
		V    any
	}{q.base, view})
	return title, b.Bytes(), err
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// document renders a whole HTML page that gets no server-sent events.
func (c *handler) document(r *http.Request, title, name string, view any) []byte {
	var b bytes.Buffer
	f := c.frameOf(r, title)
	if err := templates.ExecuteTemplate(&b, name, struct {
		Base string
		V    any
	}{f.Base, view}); err != nil {
		panic(err)
	}
	return c.execute(r, f.with(b.Bytes()))
}

// with returns the frame with the content, which html/template has escaped.
func (f frame) with(content []byte) frame {
	f.Content = template.HTML(content) //nolint:gosec // html/template has escaped the content
	return f
}

func (c *handler) frameOf(r *http.Request, title string) frame {
	caller := identity.From(r.Context())
	f := frame{Base: basePath(r), Title: title, User: caller.User, Admin: caller.Admin()}
	path := strings.TrimPrefix(r.URL.Path, prefix)
	for _, p := range c.pagesFor(caller) {
		if p.nav != "" {
			f.Nav = append(f.Nav,
				navLink{f.Base + p.path, p.nav, p.path == path || p.path == "/" && path == ""})
		}
	}
	return f
}

// execute renders a whole document and sets its headers.
func (c *handler) execute(r *http.Request, f frame) []byte {
	setHeaders(r)
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, "frame", f); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func setHeaders(r *http.Request) {
	h := osapi.Header(r.Context())
	for name, value := range securityHeaders {
		h.Set(name, value)
	}
}

// fail writes an error: to a browser as a document, to other clients as JSON. If a browser is not logged in,
// the document is the login form.
func (c *handler) fail(w http.ResponseWriter, r *http.Request, e *osapi.Error) {
	if !isBrowser(r) {
		osapi.WriteError(w, r, e)
		return
	}
	var body []byte
	if e.Status == http.StatusUnauthorized {
		problem := ""
		if _, err := r.Cookie(cookieName); !errors.Is(err, http.ErrNoCookie) {
			problem = "The token is no longer valid. Log in again."
		}
		body = c.loginDocument(r, localPath(r, r.URL.RequestURI()), problem, defaultDomains)
	} else {
		body = c.document(r, http.StatusText(e.Status), "problem", e)
	}
	w.WriteHeader(e.Status)
	_, _ = w.Write(body)
}
