package lease

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Waiting names one thing for which a lease waits: another lease, an event of the lease, a service or a
// worker.
type Waiting struct {
	For      string
	Since    time.Time
	Deadline *time.Time // nil: no deadline
}

// Explain returns one sentence that says what the lease is doing or why the lease waits, and the list of
// things for which the lease waits. If a call for a reservation has failed, the sentence names the party, the
// call and the error.
func Explain(l Lease, now time.Time) (sentence string, waiting []Waiting) {
	since := l.CreatedAt
	if l.UpdatedAt != nil {
		since = *l.UpdatedAt
	}
	working := func(verb string) (string, []Waiting) {
		return l.withFailedCalls(
			fmt.Sprintf(
				"%s: %s the %s since %s.",
				l.Status, verb, countOf(len(l.Reservations), "reservation"), formatTime(since),
			),
			since,
			now,
		)
	}
	next := Next(l, now)
	switch {
	case l.DeleteRequested || l.Status == Deleting:
		return working("is being deleted, removing")
	case l.Status == Starting:
		return working("provisioning")
	case l.Status == Terminating:
		return working("removing")
	case l.Status == Pending && len(l.Blockers) > 0 && !now.Before(l.StartAt):
		return l.explainBlocked()
	case next.Step == StepResync:
		return l.withFailedCalls(
			fmt.Sprintf("%s: its resources have changed; Nova and Neutron are being updated.", l.Status),
			since,
			now,
		)
	case next.Step == StepClear:
		return l.explainClearing(since, now)
	case next.Step == StepWait:
		return l.explainNext(now, since)
	case next.Step == StepStop:
		return l.explainStopped()
	default:
		return fmt.Sprintf(
				"%s: %s is due since %s and begins as soon as a worker takes it.",
				l.Status, next.Step, formatTime(l.dueAt(next.Step)),
			),
			[]Waiting{
				{For: "worker", Since: l.dueAt(next.Step)},
			}
	}
}

// withFailedCalls adds the failed calls of the lease's reservations to a sentence. The lease waits for the
// parties whose calls failed. If no call has failed, the lease waits for the worker that makes the calls.
func (l Lease) withFailedCalls(sentence string, since, now time.Time) (string, []Waiting) {
	var waiting []Waiting
	for _, f := range l.FailedCalls() {
		sentence += " " + f.Sentence(now) + "."
		if !slices.ContainsFunc(waiting, func(w Waiting) bool { return w.For == f.Party }) {
			waiting = append(waiting, Waiting{For: f.Party, Since: f.Since})
		}
	}
	if waiting == nil {
		waiting = []Waiting{{For: "worker", Since: since}}
	}
	return sentence, waiting
}

// explainClearing explains a lease in ERROR whose resources are still being removed.
func (l Lease) explainClearing(since, now time.Time) (string, []Waiting) {
	failed := "start"
	if l.event(EndLease).Status != EventUndone {
		failed = "end"
	}
	return l.withFailedCalls(
		fmt.Sprintf(
			"%s: its %s has failed, and its resources are still being removed; it holds %s.",
			l.Status, failed, l.holdings(),
		),
		since,
		now,
	)
}

// holdings says how many hosts, network segments and devices the lease holds.
func (l Lease) holdings() string {
	hosts, registered := 0, map[string]int{}
	for _, r := range l.Reservations {
		hosts += len(r.Hosts)
		registered[r.Type] += len(r.ResourceIDs)
	}
	var all []string
	if n := registered[NetworkSegment]; n > 0 {
		all = append(all, countOf(n, "network segment"))
	}
	if n := registered[Device]; n > 0 {
		all = append(all, countOf(n, "device"))
	}
	if hosts > 0 || all == nil {
		all = append([]string{countOf(hosts, "host")}, all...)
	}
	return strings.Join(all, " and ")
}

func (l Lease) explainBlocked() (string, []Waiting) {
	var all []Waiting
	var names []string
	for _, b := range l.Blockers {
		w := Waiting{For: "lease/" + b.ID.String(), Since: b.Since}
		if b == b.Anonymous() {
			w.For = "lease"
		}
		all = append(all, w)
		names = append(names,
			fmt.Sprintf("%s to leave %s since %s", b.label(), b.resourceLabel(), formatTime(b.Since)))
	}
	return fmt.Sprintf(
		"%s: its start is due; it waits for %s.",
		l.Status,
		strings.Join(names, " and for "),
	), all
}

func (l Lease) explainNext(now, since time.Time) (string, []Waiting) {
	at := Next(l, now).At
	what := EndLease
	if l.Status == Pending {
		what = StartLease
	} else if e := l.event(BeforeEndLease); l.Status == Active && e != nil && e.Status == EventUndone {
		what = BeforeEndLease
	}
	return fmt.Sprintf("%s: %s is next, at %s.", l.Status, what, formatTime(at)),
		[]Waiting{{For: string(what), Since: since, Deadline: &at}}
}

func (l Lease) explainStopped() (string, []Waiting) {
	if l.Status != Error {
		return fmt.Sprintf("%s: nothing is due any more.", l.Status), nil
	}
	var reasons []string
	for _, r := range l.Reservations {
		if r.LastError != "" {
			reasons = append(reasons, r.LastError)
		}
	}
	sentence := fmt.Sprintf("%s: it has ended and holds no host.", l.Status)
	if len(reasons) > 0 {
		sentence += " Errors: " + strings.Join(reasons, "; ") + "."
	}
	return sentence, nil
}

func (l Lease) dueAt(s Step) time.Time {
	which := map[Step]EventType{
		StepStart:     StartLease,
		StepBeforeEnd: BeforeEndLease,
		StepEnd:       EndLease,
		StepExpire:    EndLease,
	}[s]
	if e := l.event(which); e != nil {
		return e.At
	}
	return l.CreatedAt
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
