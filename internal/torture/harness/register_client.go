package harness

import (
	"context"
	"fmt"
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
	RegisterSet
	left atomic.Int64 // accesses until the end of the epoch
}

const (
	registerWriters  = 3
	epochAccesses    = 300
	epochsUnanswered = 5
)

// writeRegisters runs epochs until the context ends, and returns the histories of all of them.
func (d *RandomDeployment) writeRegisters(
	ctx context.Context,
	l *ledger,
	seed uint64,
) (histories [][]porcupine.Operation) {
	for n := uint64(0); ctx.Err() == nil; n++ {
		setUp := d.newClient(l, seed, 1000+n)
		e := &registerEpoch{}
		e.Start, e.Consumers = time.Now(), []string{uuid.NewString(), uuid.NewString()}
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
		histories = append(histories, e.Ops)
	}
	return histories
}

func (e *registerEpoch) unansweredWrites() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Unanswered
}

func (e *registerEpoch) createProviders(ctx context.Context, c *randomClient) bool {
	for _, id := range []*string{&e.AllocationProvider, &e.Provider} {
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
			"/placement/resource_providers/"+e.AllocationProvider+"/inventories",
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
	a := Access{Kind: Read, Register: e.Provider, Slot: c.random.IntN(SlotCount)}
	if c.random.IntN(2) == 0 {
		a.Register, a.Slot = pick(c.random, e.Consumers), 0
	}
	seen, ok := e.accessBy(ctx, c, writer, a)
	if !ok {
		return
	}
	a.Kind, a.Expect, a.Value = Write, seen.Generation, e.DrawValue(c.random, a)
	if a.Register != e.Provider && seen.Generation > 0 && c.random.IntN(8) == 0 {
		a.Kind, a.Value = Remove, ""
	}
	if c.random.IntN(4) == 0 && a.Expect > 0 {
		a.Expect--
	}
	e.accessBy(ctx, c, writer, a)
}

// accessBy sends an access and adds its outcome to the history, as registerClients.access does. Its result is
// false if no answer came.
func (e *registerEpoch) accessBy(ctx context.Context, c *randomClient, writer int, a Access) (Outcome, bool) {
	method, path, body := e.Request(a)
	began := time.Now()
	got := c.send(ctx, method, path, body, 0)
	o := Outcome{Known: got.verdict != unknown}
	switch {
	case got.status == 0 && got.verdict == refused, a.Kind == Read && got.verdict != acknowledged:
		return o, false // not sent, or a read without an answer
	case got.status == http.StatusConflict && strings.Contains(fmt.Sprint(got.body), "placement.concurrent_update"):
		o.Refused = true
	case got.verdict == refused:
		c.ledger.addFinding(
			doubled, "register "+a.Register,
			"%+v answered %d %v, expected success or a conflict of generations",
			a, got.status, got.body,
		)
		return o, false
	case got.verdict == acknowledged:
		o.Generation, o.Value = e.ParseAnswer(a, got.body)
		if a.Kind != Read {
			c.ledger.count(
				map[bool]string{true: "write provider", false: "write allocations"}[a.Register == e.Provider],
			)
		}
	}
	e.Add(writer, began, a, o)
	return o, o.Known
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
