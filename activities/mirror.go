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
	Send(ctx context.Context, method, path string, body []byte) (odl.Answer, error)
	// List hands the objects of a collection, in an envelope of that key, to each, one at a time.
	List(ctx context.Context, path, key string, each func(json.RawMessage) error) (odl.Answer, error)
	// Rests is for how long whoever asks shall leave it alone, because it is in trouble, and why.
	Rests() (wait time.Duration, why string)
	// Shows tells whether it shows what it has, so that it can be compared with the rows and brought in line with them.
	Shows() bool
}

// Record is the mirror where no controller is configured: it takes every change, keeps none and shows nothing. The
// journal is the record.
type Record struct{}

// Send accepts everything.
func (Record) Send(context.Context, string, string, []byte) (odl.Answer, error) {
	return odl.Answer{Status: 204}, nil
}

// List shows that there is nothing.
func (Record) List(context.Context, string, string, func(json.RawMessage) error) (odl.Answer, error) {
	return odl.Answer{Status: 404}, nil
}

// Rests never: nobody is asked.
func (Record) Rests() (time.Duration, string) { return 0, "" }

// Shows nothing.
func (Record) Shows() bool { return false }
