package torture

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// A register is what one generation guards: what a consumer holds, or a provider's aggregates, traits and inventory. Generation 0 of a
// consumer is that there is none.
type register struct {
	generation int64
	values     [3]string // by slot
}

// slots of a provider's register. A consumer's has one.
const (
	ofAggregates = iota
	ofTraits
	ofInventory
	slots
)

// access is a request to a register.
type access struct {
	register string
	kind     accessKind
	slot     int
	expect   int64
	value    string
}

type accessKind string

const (
	look   accessKind = "look"
	write  accessKind = "write"
	remove accessKind = "remove" // what is left is generation 0
)

// outcome is what the client learnt; that of a lost answer is the zero value.
type outcome struct {
	known      bool
	refused    bool // for its generation
	generation int64
	value      string
}

// registers is how they behave: of two writes with one generation one is done and the other refused.
var registers = porcupine.Model{
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

// step tells whether the register can answer so, and what it is then. A write whose answer was lost may have been done or not; as it
// is concurrent to everything that follows, it may also be the last, where nobody sees it.
func (r register) step(a access, o outcome) (bool, register) {
	if a.kind == look {
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
	case a.slot != ofTraits || r.values[ofTraits] != a.value: // the same traits again do not count
		r.generation++
		r.values[a.slot] = a.value
	}
	return !o.known || o.generation == r.generation, r
}

// history is what clients asked of registers and learnt.
type history struct {
	mu   sync.Mutex
	ops  []porcupine.Operation
	lost int
	done int
	zero time.Time
}

// add takes down an access that began at that time and has just ended.
func (h *history) add(client int, began time.Time, a access, o outcome) {
	op := porcupine.Operation{ClientId: client, Input: a, Output: o, Call: int64(began.Sub(h.zero)), Return: int64(time.Since(h.zero))}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !o.known:
		h.lost++
		op.Return = math.MaxInt64
	case a.kind != look && !o.refused:
		h.done++
	}
	h.ops = append(h.ops, op)
}

// progress counts the writes that were acknowledged.
func (h *history) progress() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.done
}

// judge insists that there is an order of all accesses in which registers behave so.
func (h *history) judge(t *testing.T) {
	t.Helper()
	result, why := porcupine.CheckOperationsVerbose(registers, h.ops, 2*time.Minute)
	if result == porcupine.Ok {
		return
	}
	t.Errorf("the history of %d accesses, %d of them without an answer, is %s; the longest part of it that can be explained:", len(h.ops), h.lost, result)
	for _, part := range why.PartialLinearizationsOperations() {
		longest := []porcupine.Operation{}
		for _, p := range part {
			if len(p) > len(longest) {
				longest = p
			}
		}
		t.Logf("%d accesses, the last of which are", len(longest))
		for _, o := range longest[max(0, len(longest)-8):] {
			t.Logf("  %s", registers.DescribeOperation(o.Input, o.Output))
		}
	}
}

func TestRegisterModel_RejectsImpossibleHistories(t *testing.T) {
	t.Parallel()
	set := func(expect int64, value string) access {
		return access{register: "c", kind: write, expect: expect, value: value}
	}
	at := func(generation int64, value string) outcome {
		return outcome{known: true, generation: generation, value: value}
	}
	seen := access{register: "c", kind: look}
	refused := outcome{known: true, refused: true}
	type did struct {
		access
		outcome
	}
	for name, tc := range map[string]struct {
		story []did // one after the other
		want  bool
	}{
		"a write, a look":                  {[]did{{set(0, "a"), at(1, "")}, {seen, at(1, "a")}}, true},
		"a refusal":                        {[]did{{set(0, "a"), at(1, "")}, {set(0, "b"), refused}, {seen, at(1, "a")}}, true},
		"a lost write that is done":        {[]did{{set(0, "a"), outcome{}}, {seen, at(1, "a")}, {set(0, "b"), refused}}, true},
		"a lost write that is not done":    {[]did{{set(0, "a"), outcome{}}, {seen, at(0, "")}, {set(0, "b"), at(1, "")}}, true},
		"a lost write that is late":        {[]did{{set(0, "a"), outcome{}}, {seen, at(0, "")}, {seen, at(1, "a")}}, true},
		"two writes of one generation":     {[]did{{set(0, "a"), at(1, "")}, {set(0, "b"), at(1, "")}}, false},
		"a write that is forgotten":        {[]did{{set(0, "a"), at(1, "")}, {seen, at(0, "")}}, false},
		"a refusal for nothing":            {[]did{{set(0, "a"), refused}}, false},
		"a refused write that is done":     {[]did{{set(1, "a"), refused}, {seen, at(1, "a")}}, false},
		"a lost write that comes and goes": {[]did{{set(0, "a"), outcome{}}, {seen, at(1, "a")}, {seen, at(0, "")}}, false},
		"a stale lost write that is done":  {[]did{{set(0, "a"), at(1, "")}, {set(0, "b"), outcome{}}, {seen, at(1, "b")}}, false},
	} {
		h := history{zero: time.Now()}
		for _, d := range tc.story {
			h.add(0, time.Now(), d.access, d.outcome)
			time.Sleep(time.Microsecond)
		}
		if got := porcupine.CheckOperations(registers, h.ops); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
