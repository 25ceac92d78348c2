// Package notifytest is what berth tells others: a Nova, a Neutron and a listener that remember what they were told, and
// fail as they are told.
package notifytest

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Received is one event as it came.
type ReceivedEvent struct {
	Server    string    `json:"server_uuid"`
	Name      string    `json:"name"`
	Status    string    `json:"status,omitempty"`
	Tag       string    `json:"tag,omitempty"`
	Code      int       `json:"code"` // what it was answered with
	RequestID string    `json:"request_id"`
	At        time.Time `json:"at"`
}

// maxEvents bounds the memory.
const maxEvents = 100_000

// Nova is the stand-in. Its zero value is ready.
type Nova struct {
	Token string // expected in X-Auth-Token, if set

	mu          sync.Mutex
	events      []ReceivedEvent
	compute     compute
	faults      faults
	hypervisors map[string]string
}

// Hypervisor is the state of one from now on: up, down, or disabled, which is up too.
func (n *Nova) SetHypervisor(name, state string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hypervisors == nil {
		n.hypervisors = map[string]string{}
	}
	n.hypervisors[name] = state
}

// list answers with the hypervisors, unless a fault is in the way.
func (n *Nova) list(w http.ResponseWriter) {
	if f := n.faults.take(""); f.Status != 0 {
		w.WriteHeader(f.Status)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []map[string]any{}
	for name, state := range n.hypervisors {
		one := map[string]any{"hypervisor_hostname": name, "state": "up", "status": "enabled"}
		switch state {
		case "down":
			one["state"] = "down"
		case "disabled":
			one["status"] = "disabled"
		}
		all = append(all, one)
	}
	write(w, http.StatusOK, map[string]any{"hypervisors": all})
}

// Events lists what was taken, oldest first.
func (n *Nova) Events() []ReceivedEvent {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]ReceivedEvent{}, n.events...)
}

// Inject adds faults, which meet requests in their order.
func (n *Nova) InjectFaults(faults ...Fault) { n.faults.add(faults) }

// ServeHTTP answers POST …/os-server-external-events, GET …/os-hypervisors/detail, what berth asks of the rest of the
// compute API and, for other processes,
//
//	GET    /_control/events   {"events": [Received…]}
//	GET    /_control/compute  a Compute
//	POST   /_control/servers  a Server, which is there from now on
//	POST   /_control/faults   a Fault
//	DELETE /_control/events   forget them
func (n *Nova) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/os-server-external-events"):
		n.external(w, r, raw)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/os-hypervisors/detail"):
		n.list(w)
	case r.Method == http.MethodGet && r.URL.Path == "/_control/events":
		write(w, http.StatusOK, map[string]any{"events": n.Events()})
	case r.Method == http.MethodDelete && r.URL.Path == "/_control/events":
		n.mu.Lock()
		n.events = nil
		n.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost && r.URL.Path == "/_control/faults":
		var f Fault
		if err := json.Unmarshal(raw, &f); err != nil || f.Status != 0 && (f.Status < 200 || f.Status > 599) {
			write(w, http.StatusBadRequest, map[string]any{"error": "not a fault"})
			return
		}
		n.InjectFaults(f)
		w.WriteHeader(http.StatusNoContent)
	default:
		n.other(w, r, raw)
	}
}

// other answers what is no external event and nothing about one.
func (n *Nova) other(w http.ResponseWriter, r *http.Request, raw []byte) {
	c, answer := callOf(r, raw)
	var s Server
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/_control/compute":
		write(w, http.StatusOK, n.ComputeState())
	case r.Method == http.MethodPost && r.URL.Path == "/_control/servers" && json.Unmarshal(raw, &s) == nil:
		write(w, http.StatusCreated, n.AddServer(s))
	case answer == nil:
		write(w, http.StatusNotFound, map[string]any{"error": "not found"})
	case n.Token != "" && r.Header.Get("X-Auth-Token") != n.Token:
		w.WriteHeader(http.StatusUnauthorized)
	default:
		n.faults.meet(w, r, r.Method+" /"+strings.Join(c.parts, "/"), func(Fault) (int, any) {
			n.mu.Lock()
			defer n.mu.Unlock()
			return encoded(answer(&n.compute, c))
		})
	}
}

// encoded makes JSON of an answer while what it shows cannot change.
func encoded(status int, body any) (int, any) {
	if body == nil {
		return status, nil
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return http.StatusInternalServerError, nil
	}
	return status, json.RawMessage(raw)
}

func (n *Nova) external(w http.ResponseWriter, r *http.Request, raw []byte) {
	n.faults.meet(w, r, "", func(f Fault) (int, any) { return n.take(r, raw, f.Code) })
}

// take remembers the events of a request and makes its answer.
func (n *Nova) take(r *http.Request, raw []byte, code int) (int, any) {
	if n.Token != "" && r.Header.Get("X-Auth-Token") != n.Token {
		return http.StatusUnauthorized, nil
	}
	var body struct {
		Events []ReceivedEvent `json:"events"`
	}
	if json.Unmarshal(raw, &body) != nil || len(body.Events) == 0 {
		return http.StatusBadRequest, map[string]any{"badRequest": map[string]any{"code": 400, "message": "no events"}}
	}
	status := http.StatusOK
	for i := range body.Events {
		e := &body.Events[i]
		e.Code, e.At, e.RequestID = http.StatusOK, time.Now().UTC(), r.Header.Get("X-OpenStack-Request-ID")
		if code != 0 {
			e.Code, status = code, http.StatusMultiStatus
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, body.Events...)
	if over := len(n.events) - maxEvents; over > 0 {
		n.events = slices.Delete(n.events, 0, over)
	}
	return status, map[string]any{"events": body.Events}
}

func write(w http.ResponseWriter, status int, body any) {
	if body == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
