package journal

import (
	"encoding/json"
	"net/http"
)

// Attempt is one attempt at an entry: usually a single request, with a look at the controller's object where
// it may have the change already.
//
//	a := journal.Begin(take)
//	for r, more := a.Next(); more; r, more = a.Next() {
//		a.Tell(send(r))
//	}
//	settle(a.Outcome())
type Attempt struct {
	entry    Entry
	next     Request
	step     step
	verified bool // the object was looked at because the controller said that it exists
	outcome  Outcome
}

type step int

const (
	ended step = iota
	looks
	writes
	replaces
)

// Begin begins an attempt at an entry that was taken. One that may have been applied before is looked up first.
func Begin(t Take) *Attempt {
	a := &Attempt{entry: t.Entry}
	if t.Repeat {
		a.enter(looks)
	} else {
		a.enter(writes)
	}
	return a
}

// Next is the next request; more is false once the outcome is known.
func (a *Attempt) Next() (r Request, more bool) { return a.next, a.step != ended }

// Outcome is the attempt's outcome once Next has no more requests.
func (a *Attempt) Outcome() Outcome { return a.outcome }

// Tell takes in the answer to the last request of Next.
func (a *Attempt) Tell(got Answer) {
	switch a.step {
	case looks:
		a.looked(got)
	case writes:
		o := Judge(a.entry, got)
		if o.Kind == Exists && !a.verified {
			a.verified = true
			a.enter(looks)
			return
		}
		a.end(o)
	case replaces:
		update := a.entry
		update.Operation = Update
		a.end(Judge(update, got))
	}
}

func (a *Attempt) looked(got Answer) {
	missing := got.Trouble == "" && got.Status == http.StatusNotFound
	switch {
	case Verify(a.entry, got):
		a.end(Outcome{Kind: Done})
	case missing && a.verified:
		a.end(refused(a.entry, "the controller refuses to create the object because it exists, and does not show it"))
	case missing:
		a.enter(writes)
	case got.Trouble != "" || got.Status != http.StatusOK || foreign(a.entry, got.Body):
		a.end(unread(a.entry, got))
	case a.entry.Operation == Create:
		a.enter(replaces)
	default:
		a.enter(writes)
	}
}

// unread judges a look that showed nothing. Whether an earlier attempt was applied remains unknown.
func unread(e Entry, got Answer) Outcome {
	e.Operation = Update // an object was asked for
	o, expected := trouble(e, got)
	if !expected {
		o = refused(e, says(got))
	}
	o.Unsure = true
	return o
}

func (a *Attempt) enter(s step) {
	request := map[step]func(Entry) (Request, error){looks: Read, writes: RequestOf, replaces: Replace}[s]
	next, err := request(a.entry)
	if err != nil {
		a.end(Unsendable(err))
		return
	}
	a.step, a.next = s, next
}

func (a *Attempt) end(o Outcome) { a.step, a.outcome = ended, o }

// Verify tells whether the controller's answer to Read shows that the entry needs no sending any more: it has
// the object as the entry says or, for a delete, lacks it.
func Verify(e Entry, got Answer) bool {
	switch {
	case got.Trouble != "":
		return false
	case e.Operation == Delete:
		return got.Status == http.StatusNotFound
	case got.Status != http.StatusOK:
		return false
	}
	sent, err := RequestOf(e)
	if err != nil {
		return false
	}
	return Same(sent.Body, json.RawMessage(got.Body))
}
