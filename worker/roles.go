package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.temporal.io/sdk/worker"

	"berth/activities"
	"berth/internal/config"
	"berth/internal/contract"
	"berth/internal/notify"
	"berth/internal/odl"
	"berth/internal/relay"
	"berth/workflows"
)

// startRelay delivers notes until stop, which waits for the delivery under way.
func (a *app) startRelay(ctx context.Context, fail func(error)) (stop func()) {
	if !a.has(config.Relay) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	r := relay.New(a.store, a.temporal, a.registry)
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			fail(fmt.Errorf("relay: %w", err))
		}
	}()
	return func() { cancel(); <-done }
}

// startWorking polls every task queue as soon as Temporal answers, until stop, which lets running tasks finish.
func (a *app) startWorking(ctx context.Context, fail func(error)) (stop func()) {
	if !a.has(config.Temporal) {
		a.working.Store(true)
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		workers, err := a.work(ctx)
		if err != nil {
			if ctx.Err() == nil {
				fail(err)
			}
			return
		}
		a.working.Store(true)
		<-ctx.Done()
		for _, w := range workers {
			w.Stop()
		}
	}()
	return func() { cancel(); <-done }
}

// work starts a worker per task queue, once Temporal and the namespace are there.
func (a *app) work(ctx context.Context) ([]worker.Worker, error) {
	options, err := neighbours(a.cfg)
	if err != nil {
		return nil, err
	}
	options.Store = a.store
	do := activities.New(options)
	var workers []worker.Worker
	for _, queue := range []string{contract.PortQueue, contract.LeaseQueue, contract.JournalQueue} {
		w := worker.New(a.temporal, queue, worker.Options{
			WorkerStopTimeout:          drain,
			WorkflowTaskPollerBehavior: worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
			ActivityTaskPollerBehavior: worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
			OnFatalError:               func(err error) { slog.Error("worker", "queue", queue, "error", err) },
		})
		workflows.Register(w, queue)
		w.RegisterActivity(do)
		if err := startWhenReady(ctx, a, w); err != nil {
			return nil, err
		}
		workers = append(workers, w)
	}
	return workers, nil
}

// startWhenReady waits for Temporal and for the namespace: a process may start before its neighbours do.
func startWhenReady(ctx context.Context, a *app, w worker.Worker) error {
	for told := false; ; told = true {
		if err := awaitTemporal(ctx, a.temporal); err != nil {
			return err
		}
		err := w.Start()
		if err == nil {
			return nil
		}
		if !told {
			slog.WarnContext(ctx, "the workers cannot start yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// neighbours makes the clients of the controller and of Nova. Where none is configured, nothing is sent.
func neighbours(cfg config.Config) (activities.Options, error) {
	o := activities.Options{ODL: activities.NoController{}, Nova: activities.NoNova{}}
	if cfg.ODL.URL != "" {
		var ca []byte
		var err error
		if cfg.ODL.CAFile != "" {
			if ca, err = os.ReadFile(cfg.ODL.CAFile); err != nil {
				return o, fmt.Errorf("BERTH_ODL_CA_FILE: %w", err)
			}
		}
		o.ODL, err = odl.New(odl.Config{URL: cfg.ODL.URL, User: cfg.ODL.Username, Password: cfg.ODL.Password, Timeout: cfg.ODL.Timeout, CA: ca})
		if err != nil {
			return o, err
		}
	}
	if cfg.Nova.URL != "" {
		nova, err := notify.NewNova(notify.Config{URL: cfg.Nova.URL, Token: cfg.Nova.Token})
		if err != nil {
			return o, err
		}
		o.Nova = nova
	}
	return o, nil
}
