package harness

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// ledger contains what berth has acknowledged. The clients write into the ledger; the checks compare the
// ledger with an observation at the end.
type ledger struct {
	mu           sync.Mutex
	promises     map[string]*promise // by kind and ID of the object
	acknowledged map[string]int      // operations, by kind
	unanswered   int                 // requests without an answer, or with a server error
	serverErrors []string            // answers of 500 or more, but for a 503 with Retry-After
	refused      int                 // requests with a 4xx answer
	denied       int                 // requests that berth rightly refused to a caller without permission
	findings     []finding           // violations that a client has seen
}

// promise is what berth has acknowledged about one object.
type promise struct {
	kind, id string
	values   map[string]promisedValue // by attribute
	deletion deletion
	// by entity, for each acknowledged report about the present binding: the host of this binding
	reports map[string]string
	at      time.Time // of the last acknowledgement
}

// promisedValue is the acknowledged value of an attribute, and the values of unanswered writes, which may
// take effect at any later time.
type promisedValue struct {
	acknowledged string
	possible     []string
}

func (v promisedValue) allows(value string) bool {
	return value == v.acknowledged || slices.Contains(v.possible, value)
}

type deletion int

const (
	notDeleted deletion = iota
	perhapsDeleted
	deleted
)

// finding is a violation of a promise.
type finding struct {
	class  findingClass
	object string
	detail string
}

type findingClass string

const (
	lost       findingClass = "lost"
	doubled    findingClass = "doubled"
	outOfOrder findingClass = "out of order"
	stuck      findingClass = "stuck"
	drifted    findingClass = "drifted" // something outside of the rows differs from the rows
	notDenied  findingClass = "not denied"
	crashed    findingClass = "crashed" // a process ended with a panic, or a workflow failed
)

func (f finding) String() string { return fmt.Sprintf("%s: %s: %s", f.class, f.object, f.detail) }

func newLedger() *ledger {
	return &ledger{promises: map[string]*promise{}, acknowledged: map[string]int{}}
}

func (p *promise) key() string { return p.kind + "/" + p.id }

// isCertain reports whether the ledger knows for certain that the object exists, and which value the
// attribute has.
func (p *promise) isCertain(attribute string) bool {
	return p.deletion == notDeleted && len(p.values[attribute].possible) == 0
}

// count records an acknowledged operation that concerns no object of the ledger.
func (l *ledger) count(operation string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged[operation]++
}

func (l *ledger) addFinding(class findingClass, object, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.findings = append(l.findings, finding{class, object, fmt.Sprintf(format, args...)})
}

// created records an acknowledged creation.
func (l *ledger) created(kind, id string, values map[string]string) *promise {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &promise{
		kind:    kind,
		id:      id,
		values:  map[string]promisedValue{},
		reports: map[string]string{},
		at:      time.Now(),
	}
	for attribute, v := range values {
		p.values[attribute] = promisedValue{acknowledged: v}
	}
	l.promises[p.key()] = p
	l.acknowledged["create "+kind]++
	return p
}

// changing records that a client sends a write. The row may get the value of this write at any later time,
// until the function `changed` records an acknowledged write, or `notChanged` records that berth refused this
// write.
func (l *ledger) changing(p *promise, attribute, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := p.values[attribute]
	v.possible = append(v.possible, value)
	p.values[attribute] = v
	if attribute == "host" {
		clear(p.reports)
	}
}

// changed records an acknowledged write that required a certain revision of the object. The write has changed
// the revision, so no earlier write, which required an older revision, can take effect any more.
func (l *ledger) changed(p *promise, values map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for attribute, v := range values {
		p.values[attribute] = promisedValue{acknowledged: v}
	}
	p.deletion, p.at = notDeleted, time.Now()
	l.acknowledged["update "+p.kind]++
}

// notChanged records that berth refused a write, so the row cannot have the value of this write.
func (l *ledger) notChanged(p *promise, attribute, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := p.values[attribute]
	if i := slices.Index(v.possible, value); i >= 0 {
		v.possible = slices.Delete(slices.Clone(v.possible), i, i+1)
	}
	p.values[attribute] = v
}

func (l *ledger) setDeletion(p *promise, state deletion) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if state == deleted && p.deletion != deleted {
		l.acknowledged["delete "+p.kind]++
	}
	if p.deletion != deleted {
		p.deletion, p.at = state, time.Now()
	}
}

// reported records an acknowledged report of an agent about the binding to the host.
func (l *ledger) reported(p *promise, entity, host, through string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged["report by "+through]++
	if p.values["host"].acknowledged == host && p.isCertain("host") {
		p.reports[entity], p.at = host, time.Now()
	}
}

// reportsOf returns the acknowledged reports about the present binding of a port: the host by entity.
func (l *ledger) reportsOf(p *promise) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(p.reports)
}

// forgetReports forgets the acknowledged reports, as if every agent had restarted, so that the clients send
// all reports again. Only Temporal stores the signals that no workflow has handled yet, so these signals are
// lost with Temporal's data.
func (l *ledger) forgetReports() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.promises {
		clear(p.reports)
	}
}

// isReported reports whether the ledger knows the host of a port for certain and all agents have reported for
// the binding to this host.
func (p *promise) isReported() bool {
	host := p.values["host"]
	return p.isCertain("host") && p.reports["L2"] == host.acknowledged && p.reports["DHCP"] != "" &&
		host.acknowledged != ""
}
