// Package auditlog defines the audit records, which say who changed which object through which API, and the
// hash chain that links them. A change, an insertion or a deletion of a record breaks the chain. Package
// auditlog computes values from values: the package internal/store/auditstore stores the records.
package auditlog

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"berth/internal/text"
)

// Outcomes of an audit record.
const (
	Success = "success" // the change is committed
	Denied  = "denied"  // berth refused the request with the status 403
	Omitted = "omitted" // berth refused more requests than it could record; the record contains their number
)

// Record is an audit record. The order of the fields is the order in the JSON text, over which the hash is
// computed.
type Record struct {
	At         time.Time `json:"at"` // of the process that handled the request, with microseconds
	Outcome    string    `json:"outcome"`
	User       string    `json:"user"`
	Project    string    `json:"project"`
	Roles      []string  `json:"roles"`
	AgentHost  string    `json:"agent_host,omitempty"` // the host of the agent that sent the request
	RequestID  string    `json:"request_id"`
	Address    string    `json:"address"` // of the client
	API        string    `json:"api"`
	Method     string    `json:"method"`
	Route      string    `json:"route"` // path of the route, with the names of path segments such as {id}
	ObjectType string    `json:"object_type"`
	ObjectID   string    `json:"object_id"`
	Before     *int64    `json:"before,omitempty"` // generation or revision of the object before the change
	After      *int64    `json:"after,omitempty"`  // generation or revision of the object after the change
	Status     int       `json:"status,omitempty"` // HTTP status of a refused request
	Omitted    int64     `json:"omitted,omitempty"`
}

// maxText is the maximum length of a text in a record, in characters.
const maxText = 255

// TimeLayout is the format of the time in the JSON text of a record, in UTC. All these texts have the same
// length, so their alphabetical order is the order of the times.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// FormatTime returns a time as it is in the JSON text of a record.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeLayout) }

// encodedRecord is a Record whose field At has the format TimeLayout.
type encodedRecord struct {
	At string `json:"at"`
	Record
}

// Encode returns the JSON text of a record. Longer texts than maxText are cut; NUL characters, which
// PostgreSQL cannot store, are removed.
func (r Record) Encode() []byte {
	for _, field := range []*string{
		&r.User, &r.Project, &r.AgentHost, &r.RequestID, &r.Address,
		&r.API, &r.Method, &r.Route, &r.ObjectType, &r.ObjectID,
	} {
		*field = storable(*field)
	}
	roles := make([]string, len(r.Roles))
	for i, role := range r.Roles {
		roles[i] = storable(role)
	}
	r.Roles = roles
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// strings, numbers and a time of this century can always be encoded
	_ = e.Encode(encodedRecord{FormatTime(r.At), r})
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// storable returns a text as PostgreSQL can store it.
func storable(s string) string {
	return strings.ReplaceAll(text.Excerpt(s, maxText), "\x00", "")
}
