package journal

import (
	"encoding/json"
	"net/http"
)

// Attempt is one attempt to send a journal entry to the controller. An attempt is usually a single request.
// If an earlier attempt may have been applied, the attempt reads the controller's object first. After the
// update of a pool, one more request creates the members of the pool again, because the controller drops them
// when it updates the pool.
//
//	a := journal.BeginAttempt(claim, journal.DefaultMaxFailures)
//
//	for r, more := a.NextRequest(); more; r, more = a.NextRequest() {
//
//		a.HandleResponse(send(r))
//
//	}
//
//	store(a.Outcome())
type Attempt struct {
	entry           Entry
	nested          []Change // see ClaimResult
	maxFailures     int
	next            Request
	step            step
	readAfterExists bool // the object was read because the controller said that it exists
	outcome         Outcome
}

type step int

const (
	stepEnded step = iota
	stepRead
	stepWrite
	stepReplace
	stepNested // create the nested objects, which the controller has dropped with the update
)

// BeginAttempt begins an attempt to send a claimed entry. If an earlier attempt may have been applied, the
// first request reads the controller's object. After maxFailures failures the entry becomes failed.
func BeginAttempt(t ClaimResult, maxFailures int) *Attempt {
	a := &Attempt{entry: t.Entry, nested: t.Nested, maxFailures: maxFailures}
	if t.MaybeApplied {
		a.enter(stepRead)
	} else {
		a.enter(stepWrite)
	}
	return a
}

// NextRequest returns the next request of the attempt. `more` is false when the outcome is known and there is
// no request.
func (a *Attempt) NextRequest() (r Request, more bool) { return a.next, a.step != stepEnded }

// Outcome returns the outcome of the attempt. The outcome is valid when NextRequest has returned no request.
func (a *Attempt) Outcome() Outcome { return a.outcome }

// HandleResponse handles the response to the request that NextRequest returned last.
func (a *Attempt) HandleResponse(got Response) {
	switch a.step {
	case stepRead:
		a.handleRead(got)
	case stepWrite:
		o := Evaluate(a.entry, got, a.maxFailures)
		if o.Kind == OutcomeExists && !a.readAfterExists {
			a.readAfterExists = true
			a.enter(stepRead)
			return
		}
		if a.entry.Operation == Update {
			a.endUpdate(o)
			return
		}
		a.end(o)
	case stepReplace:
		update := a.entry
		update.Operation = Update
		a.endUpdate(Evaluate(update, got, a.maxFailures))
	case stepNested:
		a.handleNested(got)
	}
}

// endUpdate ends the attempt, unless the update succeeded and the nested objects must be created again.
func (a *Attempt) endUpdate(o Outcome) {
	if o.Kind == OutcomeDone && len(a.nested) > 0 && a.entry.Operation != Delete {
		a.enter(stepNested)
		return
	}
	a.end(o)
}

// handleNested handles the response to the creation of the nested objects. If the controller answers 409, the
// nested objects exist already, so the attempt has succeeded. After any other failure, the next attempt reads
// the object and creates the nested objects again.
func (a *Attempt) handleNested(got Response) {
	e := a.entry
	e.Operation = Update
	// the controller returns the objects in the envelope of a list
	e.Object.Type = ListKey(NestedType(e.Object.Type))
	o := Evaluate(e, got, a.maxFailures)
	if got.Failure == "" && got.Status == http.StatusConflict {
		o = Outcome{Kind: OutcomeDone}
	}
	o.MaybeApplied = o.Kind != OutcomeDone
	a.end(o)
}

func (a *Attempt) handleRead(got Response) {
	missing := got.Failure == "" && got.Status == http.StatusNotFound
	switch {
	case AlreadyApplied(a.entry, got):
		a.endUpdate(Outcome{Kind: OutcomeDone})
	case missing && a.readAfterExists:
		a.end(rejected(
			a.entry,
			"the controller answers 409 to the create and 404 to the read of the object",
			a.maxFailures,
		))
	case missing:
		a.enter(stepWrite)
	case got.Failure != "" || got.Status != http.StatusOK || isForeign(a.entry, got.Body):
		a.end(unreadOutcome(a.entry, got, a.maxFailures))
	case a.entry.Operation == Create:
		a.enter(stepReplace)
	default:
		a.enter(stepWrite)
	}
}

// unreadOutcome returns the outcome of an attempt that could not read the controller's object. After such an
// attempt, berth still does not know whether an earlier attempt was applied.
func unreadOutcome(e Entry, got Response, maxFailures int) Outcome {
	e.Operation = Update // evaluate the response as that of a request for an existing object
	o, expected := expectedFailure(e, got, maxFailures)
	if !expected {
		o = rejected(e, quoteResponse(got), maxFailures)
	}
	o.MaybeApplied = true
	return o
}

func (a *Attempt) enter(s step) {
	request := map[step]func(Entry) (Request, error){
		stepRead:    ReadRequest,
		stepWrite:   WriteRequest,
		stepReplace: ReplaceRequest,
		stepNested:  func(e Entry) (Request, error) { return nestedRequest(e, a.nested) },
	}[s]
	next, err := request(a.entry)
	if err != nil {
		a.end(UnsendableOutcome(err))
		return
	}
	a.step, a.next = s, next
}

func (a *Attempt) end(o Outcome) { a.step, a.outcome = stepEnded, o }

// AlreadyApplied reports whether the response to ReadRequest shows that the entry is already applied. An
// entry is applied if the controller has the object as the entry describes it or, for a delete, does not have
// the object.
func AlreadyApplied(e Entry, got Response) bool {
	switch {
	case got.Failure != "":
		return false
	case e.Operation == Delete:
		return got.Status == http.StatusNotFound
	case got.Status != http.StatusOK:
		return false
	}
	sent, err := WriteRequest(e)
	if err != nil {
		return false
	}
	return SameObject(sent.Body, json.RawMessage(got.Body))
}
