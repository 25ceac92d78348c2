package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"

	"berth/internal/server/servertest"
)

// registerEpoch is a period in which several clients read and write a few registers, with the history of
// these accesses. A register is the data that one Placement generation protects. Each unanswered write makes
// the check of the history slower, so the clients begin another epoch, with new registers, after a few
// unanswered writes.
type registerEpoch struct {
	registerClients
	values atomic.Int64
	left   atomic.Int64 // accesses until the end of the epoch
}

const (
	registerWriters  = 3
	epochAccesses    = 300
	epochsUnanswered = 5
)

// writeRegisters runs epochs until the context ends, and returns the histories of all of them.
func (d *randomDeployment) writeRegisters(
	ctx context.Context,
	l *ledger,
	seed uint64,
) (histories [][]porcupine.Operation) {
	for n := uint64(0); ctx.Err() == nil; n++ {
		setUp := d.newClient(l, seed, 1000+n)
		e := &registerEpoch{}
		e.start, e.consumers = time.Now(), []string{uuid.NewString(), uuid.NewString()}
		if !e.createProviders(ctx, setUp) {
			return histories
		}
		e.left.Store(epochAccesses)
		var writers sync.WaitGroup
		for w := range registerWriters {
			writers.Go(func() {
				c := d.newClient(l, seed, 2000+10*n+uint64(w))
				for ctx.Err() == nil && e.left.Add(-1) > 0 && e.unansweredWrites() < epochsUnanswered {
					e.readThenWrite(ctx, c, w)
					c.wait(ctx, 300*time.Millisecond)
				}
			})
		}
		writers.Wait()
		histories = append(histories, e.ops)
	}
	return histories
}

func (e *registerEpoch) unansweredWrites() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unanswered
}

func (e *registerEpoch) createProviders(ctx context.Context, c *randomClient) bool {
	for _, id := range []*string{&e.allocationProvider, &e.provider} {
		*id = uuid.NewString()
		// an unanswered creation may have taken effect; the answer to the next attempt is then 409
		for ctx.Err() == nil {
			a := c.send(ctx, http.MethodPost, "/placement/resource_providers",
				servertest.Object{"name": "register-" + *id, "uuid": *id}, 0)
			if a.verdict == acknowledged || a.status == http.StatusConflict {
				break
			}
			pause(ctx, 300*time.Millisecond)
		}
	}
	for ctx.Err() == nil {
		a := c.send(
			ctx,
			http.MethodPut,
			"/placement/resource_providers/"+e.allocationProvider+"/inventories",
			servertest.Object{
				"resource_provider_generation": 0, "inventories": servertest.Object{"VCPU": servertest.Object{"total": 1_000_000_000}}},
			0,
		)
		if a.verdict == acknowledged || a.status == http.StatusConflict {
			return true
		}
		pause(ctx, 300*time.Millisecond)
	}
	return false
}

// readThenWrite reads a register, and then writes it with the generation that the read has shown, or
// sometimes with an older one.
func (e *registerEpoch) readThenWrite(ctx context.Context, c *randomClient, writer int) {
	a := access{kind: read, register: e.provider, slot: c.random.IntN(slotCount)}
	if c.random.IntN(2) == 0 {
		a.register, a.slot = pick(c.random, e.consumers), 0
	}
	seen, ok := e.accessBy(ctx, c, writer, a)
	if !ok {
		return
	}
	a.kind, a.expect, a.value = write, seen.generation, e.drawValue(c.random, a)
	if a.register != e.provider && seen.generation > 0 && c.random.IntN(8) == 0 {
		a.kind, a.value = remove, ""
	}
	if c.random.IntN(4) == 0 && a.expect > 0 {
		a.expect--
	}
	e.accessBy(ctx, c, writer, a)
}

func (e *registerEpoch) drawValue(r *rand.Rand, a access) string {
	switch {
	case a.register == e.provider && a.slot == aggregateSlot:
		return uuid.NewString()
	case a.register == e.provider && a.slot == traitSlot:
		return pick(r, registerTraits)
	default:
		return fmt.Sprint(e.values.Add(1))
	}
}

// accessBy sends an access and adds its outcome to the history, as registerClients.access does. Its result is
// false if no answer came.
func (e *registerEpoch) accessBy(ctx context.Context, c *randomClient, writer int, a access) (outcome, bool) {
	method, path, body := e.request(a)
	began := time.Now()
	got := c.send(ctx, method, path, body, 0)
	o := outcome{known: got.verdict != unknown}
	switch {
	case got.status == 0 && got.verdict == refused, a.kind == read && got.verdict != acknowledged:
		return o, false // not sent, or a read without an answer
	case got.status == http.StatusConflict && strings.Contains(fmt.Sprint(got.body), "placement.concurrent_update"):
		o.refused = true
	case got.verdict == refused:
		c.ledger.addFinding(
			doubled, "register "+a.register,
			"%+v answered %d %v, expected success or a conflict of generations",
			a, got.status, got.body,
		)
		return o, false
	case got.verdict == acknowledged:
		o.generation, o.value = e.parseAnswer(a, got.body)
		if a.kind != read {
			c.ledger.count(
				map[bool]string{true: "write provider", false: "write allocations"}[a.register == e.provider],
			)
		}
	}
	e.add(writer, began, a, o)
	return o, o.known
}

// checkRegisters checks that each history is linearizable: of two writes with one generation, at most one
// succeeds.
func checkRegisters(histories [][]porcupine.Operation) (findings []finding) {
	for n, ops := range histories {
		switch porcupine.CheckOperationsTimeout(registerModel, ops, time.Minute) {
		case porcupine.Illegal:
			findings = append(findings, finding{doubled, fmt.Sprintf("registers of epoch %d", n),
				fmt.Sprintf(
					"the history of %d accesses has no order in which each generation has at most one successful writer",
					len(ops),
				)})
		case porcupine.Unknown:
			findings = append(findings, finding{doubled, fmt.Sprintf("registers of epoch %d", n),
				fmt.Sprintf("the check of %d accesses did not end within a minute", len(ops))})
		}
	}
	return findings
}
