package harness

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"berth/internal/server/servertest"
)

// RegisterSet are a few registers that clients read and write, with the history of these accesses. A register
// is the data that one Placement generation protects.
type RegisterSet struct {
	History
	Consumers          []string
	Provider           string // the provider that is a register
	AllocationProvider string // the provider of all allocations
	values             atomic.Int64
}

var registerTraits = []string{"COMPUTE_NODE", "HW_CPU_X86_AVX", "HW_CPU_X86_SSE"}

// DrawValue draws the value of the write a.
func (s *RegisterSet) DrawValue(r *rand.Rand, a Access) string {
	switch {
	case a.Register == s.Provider && a.Slot == aggregateSlot:
		return uuid.NewString()
	case a.Register == s.Provider && a.Slot == traitSlot:
		return pick(r, registerTraits)
	default:
		return fmt.Sprint(s.values.Add(1))
	}
}

// Request translates an access to a register into an HTTP request.
func (s *RegisterSet) Request(a Access) (method, path string, body any) {
	if a.Register != s.Provider {
		path = "/placement/allocations/" + a.Register
	} else {
		path = "/placement/resource_providers/" + a.Register + [SlotCount]string{"/aggregates", "/traits", "/inventories"}[a.Slot]
	}
	if a.Kind == Read {
		return http.MethodGet, path, nil
	}
	if a.Register == s.Provider {
		name := [SlotCount]string{"aggregates", "traits", "inventories"}[a.Slot]
		var value any = []string{a.Value}
		if a.Slot == inventorySlot {
			total, _ := strconv.Atoi(a.Value)
			value = servertest.Object{"VCPU": servertest.Object{"total": total}}
		}
		return http.MethodPut, path, servertest.Object{name: value, "resource_provider_generation": a.Expect}
	}
	o := servertest.Object{
		"allocations":         servertest.Object{},
		"project_id":          "p",
		"user_id":             "u",
		"consumer_generation": nil,
	}
	if a.Expect > 0 {
		o["consumer_generation"] = a.Expect
	}
	if amount, err := strconv.Atoi(a.Value); err == nil {
		o["allocations"] = servertest.Object{
			s.AllocationProvider: servertest.Object{"resources": servertest.Object{"VCPU": amount}},
		}
	}
	return http.MethodPut, path, o
}

// ParseAnswer returns the generation and the value of the register in an answer. For a write of a consumer,
// ParseAnswer returns the generation that the write must produce, because the answer to this write has no
// body.
func (s *RegisterSet) ParseAnswer(a Access, answer servertest.Object) (generation int64, value string) {
	if a.Register != s.Provider {
		switch a.Kind {
		case Write:
			return a.Expect + 1, ""
		case Remove:
			return 0, ""
		}
		g, _ := answer["consumer_generation"].(float64)
		held, _ := answer["allocations"].(servertest.Object)[s.AllocationProvider].(servertest.Object)
		resources, _ := held["resources"].(servertest.Object)
		return int64(g), formatNumber(resources["VCPU"])
	}
	if g, ok := answer["resource_provider_generation"].(float64); ok {
		generation = int64(g)
	}
	if a.Kind != Read {
		return generation, ""
	}
	switch a.Slot {
	case inventorySlot:
		all, _ := answer["inventories"].(servertest.Object)
		vcpu, _ := all["VCPU"].(servertest.Object)
		return generation, formatNumber(vcpu["total"])
	default:
		var names []string
		for _, name := range answer[[SlotCount]string{"aggregates", "traits"}[a.Slot]].([]any) {
			names = append(names, fmt.Sprint(name))
		}
		slices.Sort(names)
		return generation, strings.Join(names, " ")
	}
}

func formatNumber(v any) string {
	if n, ok := v.(float64); ok {
		return strconv.FormatInt(int64(n), 10)
	}
	return ""
}
