// Package notifytest contains stubs of Nova, of Neutron and of a webhook. The stubs record the requests that
// they receive, and answer with the faults that a test injects.
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

// ReceivedEvent is an external event that the stub of Nova has received.
type ReceivedEvent struct {
	Server    string    `json:"server_uuid"`
	Name      string    `json:"name"`
	Status    string    `json:"status,omitempty"`
	Tag       string    `json:"tag,omitempty"`
	Code      int       `json:"code"` // code of the response
	RequestID string    `json:"request_id"`
	At        time.Time `json:"at"`
}

// maxEvents is the maximum number of events that the stub stores.
const maxEvents = 100_000

// Nova is a stub of Nova. The zero value of Nova is ready to use.
type Nova struct {
	Token string // expected in X-Auth-Token; empty: any token

	mu          sync.Mutex
	events      []ReceivedEvent
	compute     compute
	faults      faultQueue
	hypervisors hypervisors
}

// Events returns the received events, oldest first.
func (n *Nova) Events() []ReceivedEvent {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]ReceivedEvent{}, n.events...)
}

// InjectFaults adds faults to the stub. The stub answers each request with the first fault that matches the
// request.
func (n *Nova) InjectFaults(faults ...Fault) { n.faults.add(faults) }

// ServeHTTP serves GET / (the version), POST …/os-server-external-events, GET …/os-hypervisors/detail, GET
// …/os-availability-zone/detail, the part of the compute API that berth uses, and the control API for tests
// in other processes:
//
//	GET    /_control/events   {"events": [ReceivedEvent…]}
//	GET    /_control/compute  a ComputeState
//	POST   /_control/servers  adds a Server
//	POST   /_control/faults   adds a Fault
//	DELETE /_control/events   deletes all events
func (n *Nova) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case r.Method == http.MethodGet && r.URL.Path == "/":
		writeJSON(w, http.StatusOK,
			map[string]any{"version": map[string]any{"id": "v2.1", "status": "CURRENT"}})
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/os-server-external-events"):
		n.serveEvents(w, r, raw)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/os-hypervisors/detail"):
		n.listHypervisors(w, r)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/os-availability-zone/detail"):
		n.listZones(w)
	case r.Method == http.MethodGet && r.URL.Path == "/_control/events":
		writeJSON(w, http.StatusOK, map[string]any{"events": n.Events()})
	case r.Method == http.MethodDelete && r.URL.Path == "/_control/events":
		n.mu.Lock()
		n.events = nil
		n.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost && r.URL.Path == "/_control/faults":
		var f Fault
		if err := json.Unmarshal(raw, &f); err != nil || f.Status != 0 && (f.Status < 200 || f.Status > 599) {
			writeJSON(w, http.StatusBadRequest, map[string]any{"error": "not a fault"})
			return
		}
		n.InjectFaults(f)
		w.WriteHeader(http.StatusNoContent)
	default:
		n.serveCompute(w, r, raw)
	}
}

// serveCompute answers the control API and the compute API.
func (n *Nova) serveCompute(w http.ResponseWriter, r *http.Request, raw []byte) {
	c, answer := parseCall(r, raw)
	var s Server
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/_control/compute":
		writeJSON(w, http.StatusOK, n.ComputeState())
	case r.Method == http.MethodPost && r.URL.Path == "/_control/servers" && json.Unmarshal(raw, &s) == nil:
		writeJSON(w, http.StatusCreated, n.AddServer(s))
	case answer == nil:
		writeJSON(w, http.StatusNotFound, map[string]any{"error": "not found"})
	case n.Token != "" && r.Header.Get("X-Auth-Token") != n.Token:
		w.WriteHeader(http.StatusUnauthorized)
	default:
		n.faults.serve(w, r, r.Method+" /"+strings.Join(c.parts, "/"), func(Fault) (int, any) {
			if status, body := n.refuseUnknownService(c); status != 0 {
				return status, body
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			return encodeNow(answer(&n.compute, c))
		})
	}
}

// encodeNow encodes the response body immediately, while the caller of encodeNow still holds the stub's lock.
func encodeNow(status int, body any) (int, any) {
	if body == nil {
		return status, nil
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return http.StatusInternalServerError, nil
	}
	return status, json.RawMessage(raw)
}

func (n *Nova) serveEvents(w http.ResponseWriter, r *http.Request, raw []byte) {
	n.faults.serve(w, r, "", func(f Fault) (int, any) { return n.recordEvents(r, raw, f.Code) })
}

// recordEvents stores the events of a request and returns the response.
func (n *Nova) recordEvents(r *http.Request, raw []byte, code int) (int, any) {
	if n.Token != "" && r.Header.Get("X-Auth-Token") != n.Token {
		return http.StatusUnauthorized, nil
	}
	var body struct {
		Events []ReceivedEvent `json:"events"`
	}
	if json.Unmarshal(raw, &body) != nil || len(body.Events) == 0 {
		return http.StatusBadRequest, map[string]any{
			"badRequest": map[string]any{"code": 400, "message": "no events"},
		}
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

func writeJSON(w http.ResponseWriter, status int, body any) {
	if body == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
