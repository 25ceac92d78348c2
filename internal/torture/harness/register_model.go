package harness

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// register is the data that one Placement generation protects: the allocations of a consumer, or the
// aggregates, traits and inventory of a provider. The register of a consumer has generation 0 if the consumer
// does not exist.
type register struct {
	generation int64
	values     [3]string // the values that the generation guards; the constants below are the indexes
}

// Indexes into register.values for the register of a provider. The register of a consumer uses only index 0.
const (
	aggregateSlot = iota
	traitSlot
	inventorySlot
	SlotCount
)

// Access is a read or a write of a register.
type Access struct {
	Register string
	Kind     AccessKind
	Slot     int
	Expect   int64
	Value    string
}

type AccessKind string

const (
	Read   AccessKind = "look"
	Write  AccessKind = "write"
	Remove AccessKind = "remove" // sets generation 0
)

// Outcome is the answer to an access. The zero value of outcome means that no answer arrived.
type Outcome struct {
	Known      bool
	Refused    bool // the API refused the write because of the write's generation
	Generation int64
	Value      string
}

// registerModel is the sequential specification of a register: of two writes that send the same generation,
// one write succeeds and the API refuses the other write.
var registerModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		for _, o := range history {
			name := o.Input.(Access).Register
			by[name] = append(by[name], o)
		}
		var all [][]porcupine.Operation
		for _, part := range by {
			all = append(all, part)
		}
		return all
	},
	Init: func() any { return register{} },
	Step: func(state, input, output any) (bool, any) {
		return state.(register).step(input.(Access), output.(Outcome))
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}

// step reports whether the register r can give the outcome o to the access a. step also returns the state of
// the register after the access. The model treats a write without an answer as concurrent with all later
// operations, because the write may take effect at any later time, or never.
func (r register) step(a Access, o Outcome) (bool, register) {
	if a.Kind == Read {
		return o.Generation == r.generation && o.Value == r.values[a.Slot], r
	}
	fits := a.Expect == r.generation
	if o.Known && o.Refused == fits {
		return false, r
	}
	if !fits {
		return true, r
	}
	switch {
	case a.Kind == Remove:
		r = register{}
	// a write of the same traits does not increment the generation
	case a.Slot != traitSlot || r.values[traitSlot] != a.Value:
		r.generation++
		r.values[a.Slot] = a.Value
	}
	return !o.Known || o.Generation == r.generation, r
}

// History records the accesses of all clients and the outcome of each access.
type History struct {
	mu           sync.Mutex
	Ops          []porcupine.Operation
	Unanswered   int
	Acknowledged int
	Start        time.Time
}

// Add records an access that started at the time `began` and has just ended.
func (h *History) Add(client int, began time.Time, a Access, o Outcome) {
	op := porcupine.Operation{
		ClientId: client,
		Input:    a,
		Output:   o,
		Call:     int64(began.Sub(h.Start)),
		Return:   int64(time.Since(h.Start)),
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !o.Known:
		h.Unanswered++
		op.Return = math.MaxInt64
	case a.Kind != Read && !o.Refused:
		h.Acknowledged++
	}
	h.Ops = append(h.Ops, op)
}

// AcknowledgedWrites returns the number of acknowledged writes in the history.
func (h *History) AcknowledgedWrites() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Acknowledged
}

// CheckLinearizable checks that registerModel permits the history.
func (h *History) CheckLinearizable(t *testing.T) {
	t.Helper()
	result, why := porcupine.CheckOperationsVerbose(registerModel, h.Ops, 2*time.Minute)
	if result == porcupine.Ok {
		return
	}
	t.Errorf(
		"check a history of %d accesses, %d of them without an answer: got %s, want linearizable; longest linearizable prefix of each register:",
		len(h.Ops), h.Unanswered, result,
	)
	for _, part := range why.PartialLinearizationsOperations() {
		longest := []porcupine.Operation{}
		for _, p := range part {
			if len(p) > len(longest) {
				longest = p
			}
		}
		t.Logf("the longest partial linearization has %d accesses, the last of which are:", len(longest))
		for _, o := range longest[max(0, len(longest)-8):] {
			t.Logf("  %s", registerModel.DescribeOperation(o.Input, o.Output))
		}
	}
}
