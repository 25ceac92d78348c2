package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/google/uuid"

	"berth/starter/cli"
	"berth/starter/resource"
)

// writeResult is the result of the write of one of two competing writers.
type writeResult struct {
	writer int
	status int
	err    error
}

// raceWriters lets two writers send a write with the same generation at the same time. raceWriters returns
// the result of the writer whose write succeeded, and the result of the writer whose write was rejected. If
// not exactly one write succeeded, or if the other write was rejected for another reason than its generation,
// raceWriters returns an error.
func raceWriters(success int, write func(writer int) (int, error)) (won, lost writeResult, err error) {
	var attempts [2]writeResult
	var ready, done sync.WaitGroup
	ready.Add(2)
	for i := range attempts {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			status, err := write(i)
			attempts[i] = writeResult{i, status, err}
		})
	}
	done.Wait()
	won, lost = attempts[0], attempts[1]
	if won.err != nil {
		won, lost = lost, won
	}
	var r *cli.APIError
	switch {
	case won.err != nil:
		return won, lost, errors.Join(checkFailed("both writers were rejected"), won.err, lost.err)
	case lost.err == nil:
		return won, lost, checkFailed("both writers of one generation succeeded (%d and %d)",
			won.status, lost.status)
	case won.status != success:
		return won, lost, checkFailed("the winner got %d instead of %d", won.status, success)
	case !errors.As(lost.err, &r) || r.Status != http.StatusConflict || r.Type != "placement.concurrent_update":
		return won, lost, errors.Join(
			checkFailed("the loser was not rejected with 409 placement.concurrent_update"),
			lost.err,
		)
	}
	return won, lost, nil
}

func (d *demonstration) runGenerations(ctx context.Context) error {
	o, err := resource.Providers.Create(ctx, d.Session, cli.Object{"name": d.uniqueName("race")})
	if err != nil {
		return err
	}
	provider := fmt.Sprint(o["uuid"])
	if err := resource.SetInventories(ctx, d.Session, provider, cli.Integer(o["generation"]), cli.Object{"VCPU": 8}); err != nil {
		return err
	}
	d.printStep("POST /placement/resource_providers", "provider %s has 8 VCPU", o["name"])
	if err := d.raceAllocations(ctx, provider); err != nil {
		return err
	}
	return d.raceAggregates(ctx, provider)
}

// putAllocation replaces the allocations of a consumer.
func (d *demonstration) putAllocation(
	ctx context.Context,
	consumer, provider string,
	vcpus int,
	generation any,
) (int, error) {
	return d.API.Send(ctx, "PUT", resource.AllocationsPath+consumer, cli.Object{
		"allocations":         cli.Object{provider: cli.Object{"resources": cli.Object{"VCPU": vcpus}}},
		"project_id":          "demo",
		"user_id":             "demo",
		"consumer_type":       "INSTANCE",
		"consumer_generation": generation,
	}, nil)
}

func (d *demonstration) raceAllocations(ctx context.Context, provider string) error {
	consumer := uuid.NewString()
	if _, err := d.putAllocation(ctx, consumer, provider, 1, nil); err != nil {
		return err
	}
	read, err := resource.ConsumerAllocations(ctx, d.Session, consumer)
	if err != nil {
		return err
	}
	generation := cli.Integer(read["consumer_generation"])
	d.printStep("PUT /placement/allocations/{consumer}",
		"consumer %s has 1 VCPU at generation %d; two writers read this generation",
		consumer, generation)
	amount := func(writer int) int { return 2 + writer }
	won, lost, err := raceWriters(http.StatusNoContent, func(writer int) (int, error) {
		return d.putAllocation(ctx, consumer, provider, amount(writer), generation)
	})
	if err != nil {
		return err
	}
	d.printStep(
		"two simultaneous PUTs",
		"writer %d (%d VCPU): %d; writer %d (%d VCPU): %s",
		won.writer+1,
		amount(won.writer),
		won.status,
		lost.writer+1,
		amount(lost.writer),
		cli.Cause(errors.Unwrap(lost.err)),
	)
	if read, err = d.checkAllocated(ctx, consumer, provider, amount(won.writer)); err != nil {
		return err
	}
	current := cli.Integer(read["consumer_generation"])
	status, err := d.putAllocation(ctx, consumer, provider, amount(lost.writer), current)
	if err != nil {
		return errors.Join(checkFailed("the loser read again and was rejected again"), err)
	}
	if _, err = d.checkAllocated(ctx, consumer, provider, amount(lost.writer)); err != nil {
		return err
	}
	d.printStep("read again, PUT again", "writer %d with generation %d: %d; the consumer has %d VCPU",
		lost.writer+1, current, status, amount(lost.writer))
	return nil
}

// checkAllocated checks that the consumer has exactly one allocation: `vcpus` VCPUs of the provider.
func (d *demonstration) checkAllocated(
	ctx context.Context,
	consumer, provider string,
	vcpus int,
) (cli.Object, error) {
	o, err := resource.ConsumerAllocations(ctx, d.Session, consumer)
	if err != nil {
		return nil, err
	}
	allocations, _ := o["allocations"].(cli.Object)
	allocation, _ := allocations[provider].(cli.Object)
	resources, _ := allocation["resources"].(cli.Object)
	if len(allocations) != 1 || len(resources) != 1 || cli.Integer(resources["VCPU"]) != int64(vcpus) {
		return nil, checkFailed("the consumer should have %d VCPU but has %v", vcpus, allocations)
	}
	return o, nil
}

func (d *demonstration) raceAggregates(ctx context.Context, provider string) error {
	read, err := resource.ProviderAggregates(ctx, d.Session, provider)
	if err != nil {
		return err
	}
	generation := cli.Integer(read["resource_provider_generation"])
	aggregateIDs := [2]string{uuid.NewString(), uuid.NewString()}
	put := func(generation int64, aggregates ...string) (int, error) {
		return d.API.Send(ctx, "PUT", resource.Providers.ObjectPath(provider)+"/aggregates",
			cli.Object{"aggregates": aggregates, "resource_provider_generation": generation}, nil)
	}
	won, lost, err := raceWriters(http.StatusOK,
		func(writer int) (int, error) { return put(generation, aggregateIDs[writer]) })
	if err != nil {
		return err
	}
	d.printStep(
		"two simultaneous PUTs …/aggregates", "both at generation %d: writer %d: %d; writer %d: %s",
		generation, won.writer+1, won.status, lost.writer+1, cli.Cause(errors.Unwrap(lost.err)),
	)
	if read, err = resource.ProviderAggregates(ctx, d.Session, provider); err != nil {
		return err
	}
	current := cli.Integer(read["resource_provider_generation"])
	if read["aggregates"] == nil || cli.Cell(read["aggregates"]) != aggregateIDs[won.writer] {
		return checkFailed("the provider should be in the winner's aggregate %s but is in %s",
			aggregateIDs[won.writer], cli.Cell(read["aggregates"]))
	}
	status, err := put(current, aggregateIDs[:]...)
	if err != nil {
		return errors.Join(checkFailed("the loser read again and was rejected again"), err)
	}
	if read, err = resource.ProviderAggregates(ctx, d.Session, provider); err != nil {
		return err
	}
	if all, _ := read["aggregates"].([]any); len(all) != 2 {
		return checkFailed("the provider should be in both aggregates but is in %s",
			cli.Cell(read["aggregates"]))
	}
	d.printStep(
		"read again, PUT again",
		"writer %d with generation %d: %d; the provider is in both aggregates",
		lost.writer+1, current, status,
	)
	return nil
}
