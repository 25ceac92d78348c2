package notifytest

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// ReceivedNotification is a notification that the stub of the webhook has received.
type ReceivedNotification struct {
	ID        string         `json:"message_id"`
	Publisher string         `json:"publisher_id"`
	Type      string         `json:"event_type"`
	Priority  string         `json:"priority"`
	Timestamp string         `json:"timestamp"`
	Payload   map[string]any `json:"payload"`
}

// Webhook is a stub of a webhook that receives lease notifications. The zero value of Webhook is ready to
// use.
type Webhook struct {
	Token string // expected in X-Auth-Token; empty: any token

	mu            sync.Mutex
	notifications []ReceivedNotification
	faults        []Fault
}

// Notifications returns the received notifications, oldest first.
func (h *Webhook) Notifications() []ReceivedNotification {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]ReceivedNotification{}, h.notifications...)
}

// InjectFaults adds faults to the stub. The stub applies the faults to the next requests, in the order in
// which the faults were added. Of each Fault, the stub uses only the fields Times, Status, DropConnection and
// Applied.
func (h *Webhook) InjectFaults(faults ...Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range faults {
		for range max(f.Times, 1) {
			h.faults = append(h.faults, f)
		}
	}
}

// ServeHTTP answers every POST, to any path, as a webhook does.
func (h *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	var m ReceivedNotification
	if err != nil || r.Method != http.MethodPost || json.Unmarshal(raw, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if h.Token != "" && r.Header.Get("X-Auth-Token") != h.Token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch f := h.record(m); {
	case f.DropConnection:
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		w.WriteHeader(f.Status)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// record returns the next fault of the stub, and stores the notification unless this fault makes the request
// fail before the stub has executed it.
func (h *Webhook) record(m ReceivedNotification) Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	var f Fault
	if len(h.faults) > 0 {
		f, h.faults = h.faults[0], h.faults[1:]
	}
	if failed := f.DropConnection || f.Status != 0; !failed || f.Applied {
		h.notifications = append(h.notifications, m)
	}
	return f
}
