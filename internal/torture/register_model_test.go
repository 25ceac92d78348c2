package torture

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
	slotCount
)

// access is a read or a write of a register.
type access struct {
	register string
	kind     accessKind
	slot     int
	expect   int64
	value    string
}

type accessKind string

const (
	read   accessKind = "look"
	write  accessKind = "write"
	remove accessKind = "remove" // sets generation 0
)

// outcome is the answer to an access. The zero value of outcome means that no answer arrived.
type outcome struct {
	known      bool
	refused    bool // the API refused the write because of the write's generation
	generation int64
	value      string
}

// registerModel is the sequential specification of a register: of two writes that send the same generation,
// one write succeeds and the API refuses the other write.
var registerModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		for _, o := range history {
			name := o.Input.(access).register
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
		return state.(register).step(input.(access), output.(outcome))
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}

// step reports whether the register r can give the outcome o to the access a. step also returns the state of
// the register after the access. The model treats a write without an answer as concurrent with all later
// operations, because the write may take effect at any later time, or never.
func (r register) step(a access, o outcome) (bool, register) {
	if a.kind == read {
		return o.generation == r.generation && o.value == r.values[a.slot], r
	}
	fits := a.expect == r.generation
	if o.known && o.refused == fits {
		return false, r
	}
	if !fits {
		return true, r
	}
	switch {
	case a.kind == remove:
		r = register{}
	// a write of the same traits does not increment the generation
	case a.slot != traitSlot || r.values[traitSlot] != a.value:
		r.generation++
		r.values[a.slot] = a.value
	}
	return !o.known || o.generation == r.generation, r
}

// history records the accesses of all clients and the outcome of each access.
type history struct {
	mu           sync.Mutex
	ops          []porcupine.Operation
	unanswered   int
	acknowledged int
	start        time.Time
}

// add records an access that started at the time `began` and has just ended.
func (h *history) add(client int, began time.Time, a access, o outcome) {
	op := porcupine.Operation{
		ClientId: client,
		Input:    a,
		Output:   o,
		Call:     int64(began.Sub(h.start)),
		Return:   int64(time.Since(h.start)),
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !o.known:
		h.unanswered++
		op.Return = math.MaxInt64
	case a.kind != read && !o.refused:
		h.acknowledged++
	}
	h.ops = append(h.ops, op)
}

// acknowledgedWrites returns the number of acknowledged writes in the history.
func (h *history) acknowledgedWrites() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acknowledged
}

// checkLinearizable checks that registerModel permits the history.
func (h *history) checkLinearizable(t *testing.T) {
	t.Helper()
	result, why := porcupine.CheckOperationsVerbose(registerModel, h.ops, 2*time.Minute)
	if result == porcupine.Ok {
		return
	}
	t.Errorf(
		"check a history of %d accesses, %d of them without an answer: got %s, want linearizable; longest linearizable prefix of each register:",
		len(h.ops), h.unanswered, result,
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

func TestRegisterModel_RejectsImpossibleHistories(t *testing.T) {
	t.Parallel()
	set := func(expect int64, value string) access {
		return access{
			register: "c",
			kind:     write,
			expect:   expect,
			value:    value,
		}
	}
	at := func(generation int64, value string) outcome {
		return outcome{known: true, generation: generation, value: value}
	}
	seen := access{register: "c", kind: read}
	refused := outcome{known: true, refused: true}
	type step struct {
		access
		outcome
	}
	for name, tc := range map[string]struct {
		steps []step // one after the other
		want  bool
	}{
		"write and read":                                            {[]step{{set(0, "a"), at(1, "")}, {seen, at(1, "a")}}, true},
		"refused write":                                             {[]step{{set(0, "a"), at(1, "")}, {set(0, "b"), refused}, {seen, at(1, "a")}}, true},
		"unanswered write that took effect":                         {[]step{{set(0, "a"), outcome{}}, {seen, at(1, "a")}, {set(0, "b"), refused}}, true},
		"unanswered write without effect":                           {[]step{{set(0, "a"), outcome{}}, {seen, at(0, "")}, {set(0, "b"), at(1, "")}}, true},
		"unanswered write that took effect late":                    {[]step{{set(0, "a"), outcome{}}, {seen, at(0, "")}, {seen, at(1, "a")}}, true},
		"two writes with one generation":                            {[]step{{set(0, "a"), at(1, "")}, {set(0, "b"), at(1, "")}}, false},
		"acknowledged write that is lost":                           {[]step{{set(0, "a"), at(1, "")}, {seen, at(0, "")}}, false},
		"refusal of the current generation":                         {[]step{{set(0, "a"), refused}}, false},
		"refused write that took effect":                            {[]step{{set(1, "a"), refused}, {seen, at(1, "a")}}, false},
		"unanswered write that took effect and vanished":            {[]step{{set(0, "a"), outcome{}}, {seen, at(1, "a")}, {seen, at(0, "")}}, false},
		"unanswered write with a stale generation that took effect": {[]step{{set(0, "a"), at(1, "")}, {set(0, "b"), outcome{}}, {seen, at(1, "b")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history{start: time.Now()}
			for _, s := range tc.steps {
				h.add(0, time.Now(), s.access, s.outcome)
				time.Sleep(time.Microsecond)
			}
			if got := porcupine.CheckOperations(registerModel, h.ops); got != tc.want {
				t.Errorf("check whether the history is linearizable: got %v, want %v", got, tc.want)
			}
		})
	}
}
