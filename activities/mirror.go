package activities

import (
	"context"
	"encoding/json"
	"time"

	"berth/internal/odl"
)

// Mirror is where changes go: a controller, or a record of them alone.
type Mirror interface {
	// Send sends one request, once. An error means that nobody knows what became of it.
	Send(ctx context.Context, method, path string, body []byte) (odl.Response, error)
	// List hands the objects of a collection, in an envelope of that key, to each, one at a time.
	List(ctx context.Context, path, key string, each func(json.RawMessage) error) (odl.Response, error)
	// BreakerWait returns how long the caller must wait before the next request, and why. It returns 0 if a request may be sent now.
	BreakerWait() (wait time.Duration, why string)
	// Readable reports whether the objects can be read back and compared with the rows.
	Readable() bool
}

// Record is the mirror where no controller is configured: it takes every change, keeps none and shows nothing. The
// journal is the record.
type Record struct{}

// Send accepts everything.
func (Record) Send(context.Context, string, string, []byte) (odl.Response, error) {
	return odl.Response{Status: 204}, nil
}

// List shows that there is nothing.
func (Record) List(context.Context, string, string, func(json.RawMessage) error) (odl.Response, error) {
	return odl.Response{Status: 404}, nil
}

// BreakerWait returns 0: no request leaves the process.
func (Record) BreakerWait() (time.Duration, string) { return 0, "" }

// Readable returns false: Record keeps no objects.
func (Record) Readable() bool { return false }
