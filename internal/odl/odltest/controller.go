// Package odltest is a stub of an OpenDaylight controller in memory: an http.Handler that behaves like the
// Neutron northbound API of OpenDaylight's last releases, logs requests and injects faults. A test in
// internal/interop compares the stub's answers with those of a real controller. Unlike a real controller, the
// stub also checks the order of writes: parents before children, and no older revision after a newer one.
package odltest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// BasePath is the path of the northbound API below a server's URL.
const BasePath = "/controller/nb/v2/neutron"

// Request is a request in the stub's log.
type Request struct {
	Number     int       `json:"n"` // from 1, in the order of arrival
	ReceivedAt time.Time `json:"at"`
	Method     string    `json:"method"`
	Path       string    `json:"path"` // below BasePath
	Query      string    `json:"query,omitempty"`
	Type       string    `json:"type,omitempty"`
	ID         string    `json:"id,omitempty"`
	ParentID   string    `json:"within,omitempty"` // ID of the object that contains the collection
	Status     int       `json:"status"`           // 0: no response was sent
	Revision   int64     `json:"revision,omitempty"`
	Applied    bool      `json:"applied"` // the request changed an object
	Faulted    bool      `json:"fault"`   // a fault was injected
}

// Record holds the state and the counters of one object. A deleted object keeps its record.
type Record struct {
	Type            string         `json:"type"`
	ID              string         `json:"id"`
	Object          map[string]any `json:"object"` // nil after deletion
	Creates         int            `json:"creates"`
	Updates         int            `json:"updates"`
	Deletes         int            `json:"deletes"`
	HighestRevision int64          `json:"highest_revision"`
}

// maxLog is the maximum number of requests in the log.
const maxLog = 200_000

// Controller is the stub of an OpenDaylight controller. Create a Controller with New or OpenFile.
type Controller struct {
	User, Password string // for basic authentication; empty User: no authentication

	mu           sync.Mutex
	records      map[string]*Record        // by type and ID
	views        map[string]map[string]any // the objects as the real controller returns them, by type and ID
	log          []Request
	requestCount int
	faults       []*Fault
	violations   []string
	file         *os.File // nil: in memory only
	data         operationalData
}

// New returns an empty controller without a file.
func New() *Controller {
	return &Controller{records: map[string]*Record{}, views: map[string]map[string]any{}}
}

// Requests returns the logged requests, oldest first.
func (c *Controller) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

// Records returns the records of all objects, including deleted ones, sorted by type and ID.
func (c *Controller) Records() []Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Record, 0, len(c.records))
	for _, key := range slices.Sorted(maps.Keys(c.records)) {
		r := *c.records[key]
		r.Object = maps.Clone(r.Object)
		all = append(all, r)
	}
	return all
}

// Record returns the record of an object, or the zero Record if there never was such an object.
func (c *Controller) Record(typ, id string) Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.records[key(typ, id)]; ok {
		found := *r
		found.Object = maps.Clone(r.Object)
		return found
	}
	return Record{}
}

// Violations describes the writes that came in a wrong order: children before their parents, deletions of
// parents before their children, or older revisions after newer ones.
func (c *Controller) Violations() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.violations)
}

// LoseShare deletes a random share (0 to 1) of the objects and returns them as they were. LoseShare logs no
// request.
func (c *Controller) LoseShare(share float64, seed uint64) ([]Record, error) {
	return c.alterShare(share, seed, func(map[string]any) map[string]any { return nil })
}

// ChangeShare changes the names of a random share (0 to 1) of the objects and returns them as they were.
// ChangeShare logs no request.
func (c *Controller) ChangeShare(share float64, seed uint64) ([]Record, error) {
	return c.alterShare(share, seed, func(o map[string]any) map[string]any {
		o = maps.Clone(o)
		o["name"] = fmt.Sprint(o["name"], " changed")
		return o
	})
}

// Alter creates or replaces an object; if o is nil, Alter deletes the object. Alter logs no request.
func (c *Controller) Alter(typ, id string, o map[string]any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.records[key(typ, id)]
	if r == nil {
		r = &Record{Type: typ, ID: id}
		c.records[key(typ, id)] = r
	}
	r.Object = maps.Clone(o)
	c.resetView(r)
	return c.appendToFile(r)
}

func (c *Controller) alterShare(
	share float64,
	seed uint64,
	alter func(map[string]any) map[string]any,
) ([]Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	random := rand.New(rand.NewPCG(seed, seed))
	altered := []Record{}
	for _, key := range slices.Sorted(maps.Keys(c.records)) {
		r := c.records[key]
		if r.Object == nil || random.Float64() >= share {
			continue
		}
		altered = append(altered, *r)
		r.Object = alter(r.Object)
		c.resetView(r)
		if err := c.appendToFile(r); err != nil {
			return altered, err
		}
	}
	return altered, nil
}

// LoseAll deletes all objects, as a new datastore does. LoseAll keeps the log and the faults.
func (c *Controller) LoseAll() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.data.portStatuses = nil
	for _, r := range c.records {
		r.Object = nil
		c.resetView(r)
		if err := c.appendToFile(r); err != nil {
			return err
		}
	}
	return nil
}

func key(typ, id string) string { return typ + "/" + id }

// ServeHTTP serves the northbound API below BasePath, the operational data below /restconf, and the control
// API below /_control.
func (c *Controller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/_control/") {
		c.control(w, r)
		return
	}
	seen := Request{
		ReceivedAt: time.Now().UTC(),
		Method:     r.Method,
		Path:       r.URL.Path,
		Query:      r.URL.RawQuery,
	}
	path, northbound := strings.CutPrefix(r.URL.Path, BasePath)
	switch {
	case northbound:
		seen.Path = path
		seen.Type, seen.ID, seen.ParentID = parsePath(path)
		c.serve(w, r, seen, c.apply)
	case strings.HasPrefix(r.URL.Path, "/restconf/"):
		seen.Type, seen.ID = parseRestconfPath(r.Method, r.URL.Path)
		c.serve(w, r, seen,
			func(seen Request, body []byte) reply { return c.serveRestconf(seen, body, r.Host) })
	case strings.HasPrefix(r.URL.Path, socketsPath):
		c.serveStream(w, r)
	default:
		http.Error(w, "not the Neutron northbound", http.StatusNotFound)
	}
}

// serve answers a request with the result of the function `do`. If an injected fault matches, serve applies
// the fault instead.
func (c *Controller) serve(
	w http.ResponseWriter,
	r *http.Request,
	seen Request,
	do func(Request, []byte) reply,
) {
	body, err := readBody(r)
	if seen.ID == "" && seen.Method == http.MethodPost {
		seen.ID = objectID(body)
	}
	if err != nil {
		writeReply(w, c.logRequest(seen, reply{status: http.StatusBadRequest, text: "Invalid requests"}))
		return
	}
	if f := c.takeFault(seen); f != nil {
		seen.Faulted = true
		c.applyFault(w, r, f, seen, func() reply { return do(seen, body) })
		return
	}
	if user, password, _ := r.BasicAuth(); c.User != "" && (user != c.User || password != c.Password) {
		writeReply(w, c.logRequest(seen, reply{status: http.StatusUnauthorized}))
		return
	}
	writeReply(w, do(seen, body))
}

// reply is a response that is not yet written to the client.
type reply struct {
	status   int
	body     any    // encoded as JSON; nil: no body
	text     string // plain text; used if body is nil
	location string // Location header
	applied  bool
	revision int64
}

// logRequest logs a request with its response.
func (c *Controller) logRequest(seen Request, a reply) reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logRequestLocked(seen, a)
	return a
}

func (c *Controller) logRequestLocked(seen Request, a reply) {
	c.requestCount++
	seen.Number, seen.Status, seen.Applied, seen.Revision = c.requestCount, a.status, a.applied, a.revision
	if len(c.log) == maxLog {
		c.log = slices.Delete(c.log, 0, maxLog/10)
	}
	c.log = append(c.log, seen)
}

// apply executes and logs a request while it holds the lock, so that the log has the same order as the
// writes.
func (c *Controller) apply(seen Request, body []byte) reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.handleNorthbound(seen, body)
	c.logRequestLocked(seen, a)
	return a
}

func writeReply(w http.ResponseWriter, a reply) {
	if a.location != "" {
		w.Header().Set("Location", a.location)
	}
	switch {
	case a.body != nil:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.status)
		_ = json.NewEncoder(w).Encode(a.body)
	case a.text != "":
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(a.status)
		_, _ = fmt.Fprint(w, a.text)
	default:
		w.WriteHeader(a.status)
	}
}
