package activities

import (
	"sync"
	"time"

	"berth/internal/odl"
)

// acceptedWrite is the evidence of this process that the controller accepts writes: the time of the last
// accepted write of a journal entry. A failed request deletes the evidence, because the whole controller may
// be down from then on. If writes were accepted just before an outage, each process therefore counts the
// outage as a failure of at most one entry. Only an entry that had already failed before the outage can be
// that entry.
type acceptedWrite struct {
	mu sync.Mutex
	at time.Time // zero: no accepted write since the last failed request
}

// record records that the controller has accepted a write.
func (w *acceptedWrite) record() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = time.Now()
}

// useAsEvidence reports whether the controller accepted a write after the given time and no request has
// failed since that write. useAsEvidence deletes the evidence.
func (w *acceptedWrite) useAsEvidence(after time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	works := w.at.After(after)
	w.at = time.Time{}
	return works
}

// recentWrite is the age up to which an accepted write shows that the controller still works.
const recentWrite = time.Minute

// isRecent reports whether the controller accepted a write lately and no request has failed since that write.
func (w *acceptedWrite) isRecent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.at) < recentWrite
}

// isControllerFailure reports whether a request that was sent failed in the transport or at the controller.
func isControllerFailure(got odl.Response) bool {
	switch got.Failure {
	case "":
		return got.Status >= 500
	case odl.FailureBreakerOpen, odl.FailureBusy, odl.FailureInvalidRequest:
		return false
	default:
		return true
	}
}
