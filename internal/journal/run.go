package journal

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Run is one full sync, recovery, audit or repair.
type Run struct {
	ID         int64
	Kind       string // full-sync, recovery, audit or repair
	Plan       int64  // for a repair: the audit whose findings it repairs
	Actor      string
	Reason     string
	State      RunState
	Position   string // progress within the run; its format depends on the kind
	Progress   []TypeProgress
	Note       string
	Step       int64 // step counter; a write with an older number is refused
	CreatedAt  time.Time
	UpdatedAt  time.Time
	FinishedAt *time.Time
}

// RepairKind is the kind of run that repairs the findings of an audit.
const RepairKind = "repair"

// RunKinds lists the kinds of runs: full sync, recovery, audit and repair. The ID of a run's workflow is
// odl/KIND.
var RunKinds = []string{"full-sync", "recovery", "audit", RepairKind}

// RunState is the state of a full sync, recovery, audit or repair.
type RunState string

// The states of a full sync, recovery, audit or repair.
const (
	Running   RunState = "running"
	RunDone   RunState = "done"
	RunFailed RunState = "failed"
)

// TypeProgress is the progress of a full sync, recovery, audit or repair with the objects of one type.
type TypeProgress struct {
	Type      string `json:"type"`
	Total     int    `json:"total"`   // objects to compare
	Checked   int    `json:"checked"` // objects compared so far
	Missing   int    `json:"missing"`
	Different int    `json:"different"`
	Extra     int    `json:"extra"`
	Note      string `json:"note,omitempty"`   // why the type was skipped
	Failed    bool   `json:"failed,omitempty"` // the controller's list could not be read
	Recorded  int    `json:"recorded"`         // entries that the run recorded
	Completed int    `json:"completed"`        // recorded entries that the controller has
	// objects that are not repaired, because other transactions kept them locked
	Locked int `json:"locked,omitempty"`
}

// Finding is one difference between the controller and the database, which an audit found.
type Finding struct {
	Object     Ref
	Kind       string // missing, different or extra
	Attributes []string
	Data       json.RawMessage // berth's object, or the controller's object if it is extra
	Outcome    string          // outcome of the repair of this finding
}

// FindingLocked is the outcome of a finding whose object is not repaired, because another transaction has
// locked the object.
const FindingLocked = "another transaction has locked it"

// The kinds of findings. An object is missing, different or extra at the controller.
const (
	Missing   = "missing"
	Different = "different"
	Extra     = "extra"
)

// RepairOperation returns the operation at the controller that repairs the finding.
func (f Finding) RepairOperation() Operation {
	switch f.Kind {
	case Missing:
		return Create
	case Different:
		return Update
	default:
		return Delete
	}
}

// Differences returns how many objects the run has found to be missing, different or extra at the controller.
func (r Run) Differences() (missing, different, extra int) {
	for _, p := range r.Progress {
		missing, different, extra = missing+p.Missing, different+p.Different, extra+p.Extra
	}
	return missing, different, extra
}

// Sentence describes in one line how far the run has progressed.
func (r Run) Sentence() string {
	var parts []string
	for _, p := range r.Progress {
		s := fmt.Sprintf("%s %d of %d", p.Type, p.Checked, p.Total)
		if p.Recorded > 0 {
			s += fmt.Sprintf(" (mirrored %d of %d)", p.Completed, p.Recorded)
		}
		if p.Locked > 0 {
			s += fmt.Sprintf(" (%d not repaired, because other transactions kept them locked)", p.Locked)
		}
		if p.Total > 0 || p.Recorded > 0 || p.Locked > 0 {
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
