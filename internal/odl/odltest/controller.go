// Package odltest is an OpenDaylight controller in memory: an http.Handler that behaves like the Neutron
// northbound of the last releases, remembers what it saw, and fails as it is told. It checks what no real
// controller checks: that parents come before children and that no revision goes backwards.
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

// Base is the path of the northbound; append it to a server's URL.
const BasePath = "/controller/nb/v2/neutron"

// Seen is one request as the controller saw it.
type Request struct {
	Number     int       `json:"n"` // from 1, in the order of arrival
	ReceivedAt time.Time `json:"at"`
	Method     string    `json:"method"`
	Path       string    `json:"path"` // below Base
	Query      string    `json:"query,omitempty"`
	Type       string    `json:"type,omitempty"`
	ID         string    `json:"id,omitempty"`
	ParentID   string    `json:"within,omitempty"` // the object whose collection it is
	Status     int       `json:"status"`           // 0: no answer was given
	Revision   int64     `json:"revision,omitempty"`
	Applied    bool      `json:"applied"` // it changed what the controller has
	Faulted    bool      `json:"fault"`   // a scripted fault met it
}

// Record is what the controller knows about one object, deleted ones included.
type Record struct {
	Type            string         `json:"type"`
	ID              string         `json:"id"`
	Object          map[string]any `json:"object"` // nil once deleted
	Creates         int            `json:"creates"`
	Updates         int            `json:"updates"`
	Deletes         int            `json:"deletes"`
	HighestRevision int64          `json:"highest_revision"`
}

// maxLog bounds the memory of requests.
const maxLog = 200_000

// Controller is the stand-in. Make it with New or Open.
type Controller struct {
	User, Password string // basic authentication, if User is set

	mu         sync.Mutex
	records    map[string]*Record // by type and ID
	log        []Request
	n          int
	faults     []*Fault
	violations []string
	file       *os.File // nil: in memory only
	told       told
}

// New is an empty controller that forgets everything when it ends.
func New() *Controller { return &Controller{records: map[string]*Record{}} }

// Log is what the controller saw, oldest first.
func (c *Controller) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

// Records lists every object that ever was, sorted by type and ID.
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

// Record is what the controller knows about that object; the zero Record if it never saw it.
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

// Violations lists what broke the order: children before their parents, parents deleted before their
// children, older revisions after newer ones.
func (c *Controller) Violations() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.violations)
}

// Lose loses a share of the objects without a word, chosen by the seed, and returns what they were.
func (c *Controller) LoseShare(share float64, seed uint64) ([]Record, error) {
	return c.harm(share, seed, func(map[string]any) map[string]any { return nil })
}

// Change changes the name of a share of the objects without a word, chosen by the seed, and returns what they were.
func (c *Controller) ChangeShare(share float64, seed uint64) ([]Record, error) {
	return c.harm(share, seed, func(o map[string]any) map[string]any {
		o = maps.Clone(o)
		o["name"] = fmt.Sprint(o["name"], " changed")
		return o
	})
}

func (c *Controller) harm(share float64, seed uint64, how func(map[string]any) map[string]any) ([]Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	chance := rand.New(rand.NewPCG(seed, seed))
	harmed := []Record{}
	for _, key := range slices.Sorted(maps.Keys(c.records)) {
		r := c.records[key]
		if r.Object == nil || chance.Float64() >= share {
			continue
		}
		harmed = append(harmed, *r)
		r.Object = how(r.Object)
		if err := c.keep(r); err != nil {
			return harmed, err
		}
	}
	return harmed, nil
}

// Wipe loses all objects, as a controller with a fresh datastore has. The log and the faults stay.
func (c *Controller) LoseAll() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told.statuses = nil
	for _, r := range c.records {
		r.Object = nil
		if err := c.keep(r); err != nil {
			return err
		}
	}
	return nil
}

func key(typ, id string) string { return typ + "/" + id }

// ServeHTTP answers the northbound below Base, what the controller tells of itself below /restconf, and the controls below
// /_control.
func (c *Controller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/_control/") {
		c.control(w, r)
		return
	}
	seen := Request{ReceivedAt: time.Now().UTC(), Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery}
	path, northbound := strings.CutPrefix(r.URL.Path, BasePath)
	switch {
	case northbound:
		seen.Path = path
		seen.Type, seen.ID, seen.ParentID = route(path)
		c.serve(w, r, seen, c.apply)
	case strings.HasPrefix(r.URL.Path, "/restconf/"):
		seen.Type, seen.ID = place(r.Method, r.URL.Path)
		c.serve(w, r, seen, func(seen Request, body []byte) reply { return c.restconf(seen, body, r.Host) })
	case strings.HasPrefix(r.URL.Path, sockets):
		c.listen(w, r)
	default:
		http.Error(w, "not the Neutron northbound", http.StatusNotFound)
	}
}

// serve answers one request by doing it, or lets a fault meet it.
func (c *Controller) serve(w http.ResponseWriter, r *http.Request, seen Request, do func(Request, []byte) reply) {
	body, err := read(r)
	if seen.ID == "" && seen.Method == http.MethodPost {
		seen.ID = idOf(body)
	}
	if err != nil {
		answer(w, c.note(seen, reply{status: http.StatusBadRequest, text: "Invalid requests"}))
		return
	}
	if f := c.fault(seen); f != nil {
		seen.Faulted = true
		c.fail(w, r, f, seen, func() reply { return do(seen, body) })
		return
	}
	if user, password, _ := r.BasicAuth(); c.User != "" && (user != c.User || password != c.Password) {
		answer(w, c.note(seen, reply{status: http.StatusUnauthorized}))
		return
	}
	answer(w, do(seen, body))
}

// reply is an answer before it is written.
type reply struct {
	status   int
	body     any    // JSON; nil for none
	text     string // plain text, if there is no body
	location string // header
	applied  bool
	revision int64
}

// note logs a request with its answer. Arrival is what counts for the order, so it is called under no other
// lock than its own.
func (c *Controller) note(seen Request, a reply) reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteLocked(seen, a)
	return a
}

func (c *Controller) noteLocked(seen Request, a reply) {
	c.n++
	seen.Number, seen.Status, seen.Applied, seen.Revision = c.n, a.status, a.applied, a.revision
	if len(c.log) == maxLog {
		c.log = slices.Delete(c.log, 0, maxLog/10)
	}
	c.log = append(c.log, seen)
}

// apply does what the request says and logs both in one step, so that the log has the order of the writes.
func (c *Controller) apply(seen Request, body []byte) reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.handle(seen, body)
	c.noteLocked(seen, a)
	return a
}

func answer(w http.ResponseWriter, a reply) {
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
