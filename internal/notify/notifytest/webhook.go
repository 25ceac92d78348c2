package notifytest

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// Heard is one message as it came to the webhook.
type ReceivedNotification struct {
	ID        string         `json:"message_id"`
	Publisher string         `json:"publisher_id"`
	Type      string         `json:"event_type"`
	Priority  string         `json:"priority"`
	Timestamp string         `json:"timestamp"`
	Payload   map[string]any `json:"payload"`
}

// Webhook is somebody who listens, remembers what he heard, and fails as he is told. Its zero value is ready.
type Webhook struct {
	Token string // expected in X-Auth-Token, if set

	mu     sync.Mutex
	heard  []ReceivedNotification
	faults []Fault
}

// Heard lists what was taken, oldest first.
func (h *Webhook) Notifications() []ReceivedNotification {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]ReceivedNotification{}, h.heard...)
}

// Inject adds faults, which meet requests in their order. Of a fault, Times, Status, Drop and Applied count.
func (h *Webhook) InjectFaults(faults ...Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range faults {
		for range max(f.Times, 1) {
			h.faults = append(h.faults, f)
		}
	}
}

// ServeHTTP takes every POST.
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
	switch f := h.take(m); {
	case f.DropConnection:
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		w.WriteHeader(f.Status)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// take remembers a message, unless the fault that it meets says otherwise.
func (h *Webhook) take(m ReceivedNotification) Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	var f Fault
	if len(h.faults) > 0 {
		f, h.faults = h.faults[0], h.faults[1:]
	}
	if failed := f.DropConnection || f.Status != 0; !failed || f.Applied {
		h.heard = append(h.heard, m)
	}
	return f
}
