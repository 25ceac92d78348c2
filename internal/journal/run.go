package journal

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Run brings the controller and the rows together, or tells how they differ.
type Run struct {
	ID         int64
	Kind       string // full-sync, recovery, audit or repair
	Plan       int64  // of a repair: the audit whose findings it mends
	Actor      string
	Reason     string
	State      RunState
	Position   string // how far it is, in the words of its kind
	Progress   []TypeProgress
	Note       string
	Step       int64 // fences the steps
	CreatedAt  time.Time
	UpdatedAt  time.Time
	FinishedAt *time.Time
}

// RepairKind is the kind of run that follows a plan.
const RepairKind = "repair"

// RunKinds are the kinds of runs: the keys of their workflows.
var RunKinds = []string{"full-sync", "recovery", "audit", RepairKind}

// RunState is a run's state.
type RunState string

// A run's life.
const (
	Running   RunState = "running"
	RunDone   RunState = "done"
	RunFailed RunState = "failed"
)

// TypeProgress is how far a run is with the objects of one type.
type TypeProgress struct {
	Type      string `json:"type"`
	Total     int    `json:"total"`   // objects to look at
	Checked   int    `json:"checked"` // looked at so far
	Missing   int    `json:"missing"`
	Different int    `json:"different"`
	Extra     int    `json:"extra"`
	Note      string `json:"note,omitempty"`   // why the type was not looked at
	Failed    bool   `json:"failed,omitempty"` // the controller did not show it as it should
	Recorded  int    `json:"recorded"`         // entries of the run
	Completed int    `json:"completed"`        // those of them that the controller has
}

// Finding is one object that the controller lacks, has otherwise, or has though it shall not.
type Finding struct {
	Object     Ref
	Kind       string // missing, different or extra
	Attributes []string
	Data       json.RawMessage // what the controller shall have, or has of an extra object
	Outcome    string          // of its repair
}

// The kinds of findings.
const (
	Missing   = "missing"
	Different = "different"
	Extra     = "extra"
)

// Act is the operation that mends the finding.
func (f Finding) Act() Operation {
	switch f.Kind {
	case Missing:
		return Create
	case Different:
		return Update
	default:
		return Delete
	}
}

// Sentence says in one line how far the run is.
func (r Run) Sentence() string {
	var parts []string
	for _, p := range r.Progress {
		s := fmt.Sprintf("%s %d of %d", p.Type, p.Checked, p.Total)
		if p.Recorded > 0 {
			s += fmt.Sprintf(" (mirrored %d of %d)", p.Completed, p.Recorded)
		}
		if p.Total > 0 || p.Recorded > 0 {
			parts = append(parts, s)
		}
	}
	s := fmt.Sprintf("The %s %d is %s", r.Kind, r.ID, r.State)
	if len(parts) > 0 {
		s += ": " + strings.Join(parts, ", ")
	}
	if r.Note != "" {
		s += "; " + r.Note
	}
	return s + "."
}
