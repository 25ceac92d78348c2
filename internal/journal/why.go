package journal

import (
	"fmt"
	"strconv"
	"time"
)

// Summary returns a one-line name of an entry for human readers.
func Summary(e Entry) string {
	name := e.Name
	if name == "" {
		name = e.Object.ID
	}
	return fmt.Sprintf("%s %s %s", e.Operation, e.Object.Type, name)
}

// Sentence describes in one line the state of an entry, and what the entry waits for. pause is nil if the
// journal is not paused.
func Sentence(e Entry, blockers []Blocker, pause *Pause) string {
	switch {
	case pause == nil || e.State == Completed || e.State == Failed:
		return stateSentence(e, blockers)
	case e.State == Pending && len(blockers) == 0:
		return pause.Sentence()
	default:
		return stateSentence(e, blockers) + "; " + pause.Sentence()
	}
}

func stateSentence(e Entry, blockers []Blocker) string {
	switch {
	case e.State == Completed && e.LastError != "":
		return e.LastError
	case e.State == Completed:
		return "the controller has the change" + senderSuffix(e)
	case e.State == Failed:
		return "the controller refused it " + times(e.Failures) + ", retry or skip it: " + e.LastError
	case len(blockers) > 0:
		return "waits for " + describeBlockers(blockers)
	case e.State == Processing:
		return "is being sent, attempt " + strconv.Itoa(e.Attempt) + senderSuffix(e)
	case e.LastError != "":
		return "will be sent again after attempt " + strconv.Itoa(e.Attempt) + ": " + e.LastError
	default:
		return "will be sent as soon as a worker takes it"
	}
}

// senderSuffix returns a text that names the workflow that sends the entry, if this is the workflow of
// another entry.
func senderSuffix(e Entry) string {
	if e.SentBy == nil {
		return ""
	}
	return fmt.Sprintf("; sent by the workflow journal/%d", *e.SentBy)
}

// describeBlockers describes the first failed blocker, because an operator has to act on it. If no blocker
// has failed, describeBlockers describes the oldest blocker.
func describeBlockers(blockers []Blocker) string {
	b := blockers[0]
	for _, other := range blockers {
		if other.State == Failed {
			b = other
			break
		}
	}
	s := fmt.Sprintf("entry %d (%s %s %s), which is %s",
		b.Seq, b.Operation, b.Object.Type, b.Object.ID, b.State)
	if more := len(blockers) - 1; more > 0 {
		s += fmt.Sprintf(", and %d more", more)
	}
	return s
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

// Waiting is one party that an entry waits for.
type Waiting struct {
	For   string
	Since time.Time
}

// WaitingFor lists the parties that an entry waits for: an administrator if the entry has failed, otherwise
// the entry's blockers, or the controller if the entry has no blockers. While the journal is paused, an entry
// without blockers waits for an administrator.
func WaitingFor(e Entry, blockers []Blocker, pause *Pause) []Waiting {
	since := e.CreatedAt
	if e.TakenAt != nil {
		since = *e.TakenAt
	}
	switch {
	case e.State == Completed:
		return nil
	case e.State == Failed:
		return []Waiting{{For: "an administrator", Since: since}}
	case len(blockers) == 0 && pause != nil:
		return []Waiting{{For: "an administrator", Since: pause.At}}
	case len(blockers) == 0:
		return []Waiting{{For: "controller", Since: since}}
	}
	all := make([]Waiting, len(blockers))
	for i, b := range blockers {
		all[i] = Waiting{For: "journal/" + strconv.FormatInt(b.Seq, 10), Since: b.Since}
	}
	return all
}
