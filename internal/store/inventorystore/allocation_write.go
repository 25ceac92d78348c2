package inventorystore

import (
	"cmp"
	"context"
	"slices"

	"berth/internal/inventory"
	"berth/internal/store/db"
	"berth/internal/tracing"
)

// AllocationWrite is a write that replaces the allocations of one or more consumers. If the write is not
// allowed for one consumer, it changes none of the consumers.
type AllocationWrite struct {
	actor   string
	request string // ID of the request; empty: none
	// writes the audit records of the write if it has a transaction of its own; may be nil
	recorder db.Recorder
	Writes   []inventory.ConsumerWrite // sorted by consumer
	// an *inventory.Fault if the write is not allowed; set by the transaction
	Fault error
}

// NewAllocationWrite returns a write of allocations by the actor in ctx.
func NewAllocationWrite(ctx context.Context, writes []inventory.ConsumerWrite) *AllocationWrite {
	return &AllocationWrite{
		actor:   db.Actor(ctx),
		request: tracing.RequestIDsOf(ctx).ID,
		Writes:  slices.SortedFunc(slices.Values(writes), compareConsumers),
	}
}

func compareConsumers(a, b inventory.ConsumerWrite) int { return cmp.Compare(a.Consumer, b.Consumer) }

// providers returns the UUIDs of the providers of the new allocations, sorted.
func (w *AllocationWrite) providers() []string {
	var all []string
	for _, c := range w.Writes {
		all = append(all, c.Allocations.Providers()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// consumers returns the UUIDs of the consumers in the write, sorted.
func (w *AllocationWrite) consumers() []string { return consumersOf(w.Writes) }

// consumersOf returns the UUIDs of the consumers of writes.
func consumersOf(writes []inventory.ConsumerWrite) []string {
	all := make([]string, len(writes))
	for i, w := range writes {
		all[i] = w.Consumer
	}
	return all
}

// allocatesFromOneProvider reports whether the write deletes no consumer and all its new allocations are from
// one provider.
func (w *AllocationWrite) allocatesFromOneProvider() bool {
	deletes := slices.ContainsFunc(w.Writes,
		func(c inventory.ConsumerWrite) bool { return len(c.Allocations) == 0 })
	return !deletes && len(w.providers()) == 1
}
