// Package keystonetest is a stub of Keystone for tests. The stub keeps its users and tokens in memory. The
// stub issues, validates, expires and revokes tokens as Keystone does. A test can make the requests to the
// stub fail or wait.
package keystonetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// lifetime is how long a token is valid.
const lifetime = time.Hour

// Token describes a token.
type Token struct {
	User    string // ID
	Project string // ID; empty for a token of another scope
	System  bool
	Domain  string
	Roles   []string
	Expires time.Time // zero means one hour from now
}

type user struct {
	password, project string
	roles             []string
}

// Server is a stub of Keystone.
type Server struct {
	URL string // without /v3

	mu          sync.Mutex
	now         time.Time
	users       map[string]user
	tokens      map[string]Token
	catalog     []object
	issued      int
	status      int           // status of every response while the server fails; 0 otherwise
	retryAfter  string        // header Retry-After of the responses while the server fails
	gate        chan struct{} // closed when waiting requests may continue
	first       chan struct{}
	logins      int
	validations map[string]int
}

// New starts a server that stops at the end of the test. The server's clock moves only when the test calls
// Advance.
func New(t testing.TB) *Server {
	s := &Server{
		now:         time.Now().UTC().Truncate(time.Second),
		users:       map[string]user{},
		tokens:      map[string]Token{},
		gate:        make(chan struct{}),
		validations: map[string]int{},
	}
	close(s.gate)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v3", s.version)
	mux.HandleFunc("POST /v3/auth/tokens", s.create)
	mux.HandleFunc("GET /v3/auth/tokens", s.validate)
	mux.HandleFunc("GET /v3/projects", s.projects)
	mux.HandleFunc("GET /v3/projects/{id}", s.project)
	server := httptest.NewServer(s.withFaults(mux))
	t.Cleanup(server.Close)
	s.URL = server.URL
	s.Service("identity", s.URL+"/v3")
	return s
}

// User creates a user with a password. The user can log in to the given project, in the domain Default.
func (s *Server) User(name, password, project string, roles ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[name] = user{password: password, project: project, roles: roles}
}

// Issue issues a token without a login.
func (s *Server) Issue(t Token) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issue(t)
}

func (s *Server) issue(t Token) string {
	if t.Expires.IsZero() {
		t.Expires = s.now.Add(lifetime)
	}
	s.issued++
	id := fmt.Sprintf("gAAAA-%s-%d", t.User, s.issued)
	s.tokens[id] = t
	return id
}

// Revoke revokes a token.
func (s *Server) Revoke(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, id)
}

// RevokeUser revokes every token of a user, as a change of the password does.
func (s *Server) RevokeUser(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, t := range s.tokens {
		if t.User == name {
			delete(s.tokens, id)
		}
	}
}

// Fail makes the server answer every request with the given status, until Fail(0).
func (s *Server) Fail(status int) { s.FailUntil(status, "") }

// FailUntil is like Fail, and adds the header Retry-After to the answers.
func (s *Server) FailUntil(status int, retryAfter string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.retryAfter = status, retryAfter
}

// Hold makes requests wait until release is called. The channel `arrived` receives a value when the first
// request waits.
func (s *Server) Hold() (arrived <-chan struct{}, release func()) {
	gate, first := make(chan struct{}), make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate, s.first = gate, first
	return first, sync.OnceFunc(func() { close(gate) })
}

// Advance moves the clock forward.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// Now returns the time of the server's clock.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Validations returns how often a token was validated; successful and failed validations count.
func (s *Server) Validations(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.validations[id]
}

// Logins counts the login attempts.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

// withFaults counts validations, delays requests after Hold, and answers with the status that the test has
// given to Fail.
func (s *Server) withFaults(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.validations[r.Header.Get("X-Subject-Token")]++
		gate := s.gate
		select {
		case s.first <- struct{}{}:
		default:
		}
		s.mu.Unlock()
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.status != 0 {
			w.Header().Set("Location", "/elsewhere")
			if s.retryAfter != "" {
				w.Header().Set("Retry-After", s.retryAfter)
			}
			writeError(w, s.status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

type object map[string]any

type domain struct {
	Name string `json:"name"`
}

type login struct {
	Auth struct {
		Identity struct {
			Methods  []string `json:"methods"`
			Password struct {
				User struct {
					Name, Password string
					Domain         domain
				} `json:"user"`
			} `json:"password"`
		} `json:"identity"`
		Scope struct {
			Project struct {
				Name   string
				Domain domain
			} `json:"project"`
		} `json:"scope"`
	} `json:"auth"`
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	s.logins++
	var l login
	if err := json.NewDecoder(r.Body).Decode(&l); err != nil {
		writeError(w, http.StatusBadRequest)
		return
	}
	credentials, scope := l.Auth.Identity.Password.User, l.Auth.Scope.Project
	u, ok := s.users[credentials.Name]
	if !ok || u.password != credentials.Password || u.project != scope.Name ||
		credentials.Domain.Name != "Default" ||
		scope.Domain.Name != "Default" ||
		!slices.Contains(l.Auth.Identity.Methods, "password") {
		writeError(w, http.StatusUnauthorized)
		return
	}
	id := s.issue(Token{User: credentials.Name, Project: u.project, Roles: u.roles})
	w.Header().Set("X-Subject-Token", id)
	s.writeToken(w, http.StatusCreated, s.tokens[id])
}

func (s *Server) validate(w http.ResponseWriter, r *http.Request) {
	own, ok := s.findToken(r.Header.Get("X-Auth-Token"))
	if !ok {
		writeError(w, http.StatusUnauthorized)
		return
	}
	if !slices.Contains(own.Roles, "service") && !slices.Contains(own.Roles, "admin") {
		writeError(w, http.StatusForbidden)
		return
	}
	id := r.Header.Get("X-Subject-Token")
	t, ok := s.findToken(id)
	if !ok {
		writeError(w, http.StatusNotFound)
		return
	}
	w.Header().Set("X-Subject-Token", id)
	s.writeToken(w, http.StatusOK, t)
}

// findToken returns a token that is neither revoked nor expired.
func (s *Server) findToken(id string) (Token, bool) {
	t, ok := s.tokens[id]
	return t, ok && s.now.Before(t.Expires)
}

func (s *Server) writeToken(w http.ResponseWriter, status int, t Token) {
	roles := []object{}
	for _, role := range t.Roles {
		roles = append(roles, object{"id": "r-" + role, "name": role})
	}
	token := object{
		"methods":    []string{"password"},
		"expires_at": t.Expires.Format("2006-01-02T15:04:05.000000Z"),
		"user": object{
			"id":     t.User,
			"name":   t.User,
			"domain": object{"id": "default", "name": "Default"},
		},
		"roles":     roles,
		"issued_at": s.now.Format("2006-01-02T15:04:05.000000Z"),
		"catalog":   s.catalog,
	}
	switch {
	case t.Project != "":
		token["project"] = object{
			"id":     t.Project,
			"name":   t.Project,
			"domain": object{"id": "default", "name": "Default"},
		}
	case t.System:
		token["system"] = object{"all": true}
	case t.Domain != "":
		token["domain"] = object{"id": t.Domain, "name": t.Domain}
	}
	write(w, status, object{"token": token})
}

func writeError(w http.ResponseWriter, status int) {
	write(w, status, object{"error": object{"code": status, "title": http.StatusText(status)}})
}

func write(w http.ResponseWriter, status int, o object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(o)
}
