package server

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"berth/internal/config"
	"berth/internal/store/inventorystore"
)

// startHTTP answers requests on every endpoint until stop is called. stop waits for the answers to running
// requests, until the context of stop ends.
func (a *App) startHTTP(ctx context.Context, fail func(error)) (stop func(context.Context)) {
	slog.InfoContext(ctx, "serving", "address", a.Address(), "roles", a.cfg.Roles)
	if a.operators != nil {
		slog.InfoContext(ctx, "serving operators", "address", a.operators.address())
	}
	var served sync.WaitGroup
	for _, e := range a.endpoints() {
		served.Go(func() {
			if err := e.serve(); err != nil {
				fail(err)
			}
		})
	}
	return func(ctx context.Context) {
		var stopped sync.WaitGroup
		for _, e := range a.endpoints() {
			stopped.Go(func() { e.stop(ctx) })
		}
		stopped.Wait()
		served.Wait()
	}
}

// startRelay runs the relay until stop is called. If the process does not have the role relay, startRelay
// does nothing.
func (a *App) startRelay(ctx context.Context, fail func(error)) (stop func()) {
	if !a.hasRole(config.Relay) {
		return func() {}
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.relay.Run(running); err != nil && running.Err() == nil {
			fail(fmt.Errorf("relay: %w", err))
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// startReconciler runs two loops until stop is called. One loop compares the rows of the database with
// Temporal, and repairs the differences in Temporal. The other loop delivers overdue Nova events and overdue
// notifications to agents without Temporal. If the process does not have the role relay, startReconciler does
// nothing.
func (a *App) startReconciler(ctx context.Context) (stop func()) {
	if !a.hasRole(config.Relay) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { a.reconciler.Run(ctx) })
	wait.Go(func() { a.direct.Run(ctx) })
	return func() {
		cancel()
		wait.Wait()
	}
}

// startFeedback reads the controller's reports until stop is called. If the process does not have the role
// temporal or if no controller is configured, startFeedback does nothing.
func (a *App) startFeedback(ctx context.Context) (stop func()) {
	if a.feedback == nil || !a.hasRole(config.Temporal) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { a.feedback.Run(ctx) })
	return func() {
		cancel()
		wait.Wait()
	}
}

// startConflictCounts adds the generation conflicts that this process counts to the database until stop is
// called. If the process does not have the role api, it counts none, and startConflictCounts does nothing.
// Call stop after the HTTP server has stopped: stop adds the last conflicts.
func (a *App) startConflictCounts(ctx context.Context) (stop func()) {
	if !a.hasRole(config.API) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wait sync.WaitGroup
	wait.Go(func() { a.store.Inventory.WriteConflicts(ctx, inventorystore.ConflictInterval) })
	return func() {
		cancel()
		wait.Wait()
	}
}

// startRPC runs the parts of the process that use RabbitMQ until stop is called. If the process has the role
// rpc, startRPC runs the server that answers agents; if the process has the role temporal or relay, startRPC
// runs the publisher of notifications to agents.
func (a *App) startRPC(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	if a.rpcServer != nil {
		wait.Go(func() { a.rpcServer.Run(ctx) })
	}
	if a.publisher != nil {
		wait.Go(func() { a.publisher.Run(ctx) })
	}
	return func() {
		cancel()
		wait.Wait()
	}
}
