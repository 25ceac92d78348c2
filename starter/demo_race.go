package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/google/uuid"
)

// attempt is what came of one writer's write.
type attempt struct {
	writer int
	status int
	err    error
}

// race lets two writers send at the same time and returns the winner and the loser: one success, one refusal
// for the generation.
func race(success int, write func(writer int) (int, error)) (won, lost attempt, err error) {
	var attempts [2]attempt
	var ready, done sync.WaitGroup
	ready.Add(2)
	for i := range attempts {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			status, err := write(i)
			attempts[i] = attempt{i, status, err}
		})
	}
	done.Wait()
	won, lost = attempts[0], attempts[1]
	if won.err != nil {
		won, lost = lost, won
	}
	var r *refusal
	switch {
	case won.err != nil:
		return won, lost, errors.Join(broken("both writers were refused"), won.err, lost.err)
	case lost.err == nil:
		return won, lost, broken("both writers of one generation succeeded (%d and %d)", won.status, lost.status)
	case won.status != success:
		return won, lost, broken("the winner got %d instead of %d", won.status, success)
	case !errors.As(lost.err, &r) || r.status != http.StatusConflict || r.kind != "placement.concurrent_update":
		return won, lost, errors.Join(broken("the loser was refused otherwise than by 409 placement.concurrent_update"), lost.err)
	}
	return won, lost, nil
}

func (d *stage) playRaces(ctx context.Context) error {
	o, err := providers.create(ctx, d.session, object{"name": d.name("race")})
	if err != nil {
		return err
	}
	provider := fmt.Sprint(o["uuid"])
	if err := stock(ctx, d.session, provider, integer(o["generation"]), object{"VCPU": 8}); err != nil {
		return err
	}
	d.step("POST /placement/resource_providers", "provider %s has 8 VCPU", o["name"])
	if err := d.raceAllocations(ctx, provider); err != nil {
		return err
	}
	return d.raceAggregates(ctx, provider)
}

// claim writes what a consumer holds of one provider.
func (d *stage) claim(ctx context.Context, consumer, provider string, vcpus int, generation any) (int, error) {
	return d.api.send(ctx, "PUT", allocations+consumer, object{
		"allocations": object{provider: object{"resources": object{"VCPU": vcpus}}},
		"project_id":  "demo", "user_id": "demo", "consumer_type": "INSTANCE", "consumer_generation": generation}, nil)
}

func (d *stage) raceAllocations(ctx context.Context, provider string) error {
	consumer := uuid.NewString()
	if _, err := d.claim(ctx, consumer, provider, 1, nil); err != nil {
		return err
	}
	read, err := holding(ctx, d.session, consumer)
	if err != nil {
		return err
	}
	generation := integer(read["consumer_generation"])
	d.step("PUT /placement/allocations/{consumer}", "consumer %s holds 1 VCPU at generation %d; two writers read that", consumer, generation)
	amount := func(writer int) int { return 2 + writer }
	won, lost, err := race(http.StatusNoContent, func(writer int) (int, error) {
		return d.claim(ctx, consumer, provider, amount(writer), generation)
	})
	if err != nil {
		return err
	}
	d.step("two PUTs at once", "writer %d (%d VCPU): %d; writer %d (%d VCPU): %s", won.writer+1, amount(won.writer), won.status,
		lost.writer+1, amount(lost.writer), reason(errors.Unwrap(lost.err)))
	if read, err = d.heldIs(ctx, consumer, provider, amount(won.writer)); err != nil {
		return err
	}
	again := integer(read["consumer_generation"])
	status, err := d.claim(ctx, consumer, provider, amount(lost.writer), again)
	if err != nil {
		return errors.Join(broken("the loser read again and was refused again"), err)
	}
	if _, err = d.heldIs(ctx, consumer, provider, amount(lost.writer)); err != nil {
		return err
	}
	d.step("read again, PUT again", "writer %d with generation %d: %d; the consumer holds %d VCPU", lost.writer+1, again, status, amount(lost.writer))
	return nil
}

// heldIs checks that a consumer holds exactly that.
func (d *stage) heldIs(ctx context.Context, consumer, provider string, vcpus int) (object, error) {
	o, err := holding(ctx, d.session, consumer)
	if err != nil {
		return nil, err
	}
	claims, _ := o["allocations"].(object)
	on, _ := claims[provider].(object)
	resources, _ := on["resources"].(object)
	if len(claims) != 1 || len(resources) != 1 || integer(resources["VCPU"]) != int64(vcpus) {
		return nil, broken("the consumer should hold %d VCPU but holds %v", vcpus, claims)
	}
	return o, nil
}

func (d *stage) raceAggregates(ctx context.Context, provider string) error {
	read, err := aggregatesOf(ctx, d.session, provider)
	if err != nil {
		return err
	}
	generation := integer(read["resource_provider_generation"])
	mine := [2]string{uuid.NewString(), uuid.NewString()}
	put := func(generation int64, aggregates ...string) (int, error) {
		return d.api.send(ctx, "PUT", providers.at(provider)+"/aggregates",
			object{"aggregates": aggregates, "resource_provider_generation": generation}, nil)
	}
	won, lost, err := race(http.StatusOK, func(writer int) (int, error) { return put(generation, mine[writer]) })
	if err != nil {
		return err
	}
	d.step("two PUTs …/aggregates at once", "both at generation %d: writer %d: %d; writer %d: %s", generation, won.writer+1, won.status,
		lost.writer+1, reason(errors.Unwrap(lost.err)))
	if read, err = aggregatesOf(ctx, d.session, provider); err != nil {
		return err
	}
	again := integer(read["resource_provider_generation"])
	if read["aggregates"] == nil || cell(read["aggregates"]) != mine[won.writer] {
		return broken("the provider should be in the winner's aggregate %s but is in %s", mine[won.writer], cell(read["aggregates"]))
	}
	status, err := put(again, mine[:]...)
	if err != nil {
		return errors.Join(broken("the loser read again and was refused again"), err)
	}
	if read, err = aggregatesOf(ctx, d.session, provider); err != nil {
		return err
	}
	if all, _ := read["aggregates"].([]any); len(all) != 2 {
		return broken("the provider should be in both aggregates but is in %s", cell(read["aggregates"]))
	}
	d.step("read again, PUT again", "writer %d with generation %d: %d; the provider is in both aggregates", lost.writer+1, again, status)
	return nil
}
