package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"berth/activities"
	"berth/internal/api/rpc"
	"berth/internal/cloud"
	"berth/internal/config"
	"berth/internal/contract"
	"berth/internal/feedback"
	"berth/internal/identity"
	"berth/internal/notify"
	"berth/internal/odl"
	"berth/internal/relay"
	"berth/internal/store"
	"berth/workflows"
)

// neighbours makes the clients of the controller, of Nova and of who listens to leases. Where none is configured, nothing is sent. Nova
// believes the token that is set, else that of berth's user at Keystone, which does not expire for good.
func neighbours(cfg config.Config, id identity.Authenticator) (activities.Options, error) {
	o := activities.Options{ODL: activities.Record{}, Nova: activities.NoNova{}, Webhook: activities.NoWebhook{}, Agents: activities.NoAgents{}}
	if c := cfg.ODL; c.URL != "" {
		var ca []byte
		var err error
		if c.CAFile != "" {
			if ca, err = os.ReadFile(c.CAFile); err != nil {
				return o, fmt.Errorf("BERTH_ODL_CA_FILE: %w", err)
			}
		}
		o.ODL, err = odl.New(odl.Config{URL: c.URL, User: c.Username, Password: c.Password, Timeout: c.Timeout, CAPEM: ca})
		if err != nil {
			return o, fmt.Errorf("BERTH_ODL_URL: %w", err)
		}
	}
	if c := cfg.Nova; c.URL != "" {
		how := notify.Config{URL: c.URL, Token: c.Token}
		if keystone, ok := id.(*identity.Keystone); ok && c.Token == "" {
			how.TokenSource = keystone.Fresh
		}
		nova, err := notify.NewNova(how)
		if err != nil {
			return o, fmt.Errorf("BERTH_NOVA_URL: %w", err)
		}
		o.Nova = notify.NewEventBatcher(nova.Send)
		if cfg.Lease.Monitor {
			o.Hypervisors = nova
		}
	}
	if c := cfg.Lease.Enforcement; c.URL != "" {
		var err error
		o.Enforcement, err = notify.NewEnforcement(notify.EnforcementConfig{URL: c.URL, Token: c.Token, FailOpen: c.AllowOnFailure,
			AuthURL: cfg.Service.AuthURL, Region: cfg.Service.Region})
		if err != nil {
			return o, fmt.Errorf("BERTH_LEASE_ENFORCEMENT_URL: %w", err)
		}
	}
	if c := cfg.Lease.Webhook; c.URL != "" {
		webhook, err := notify.NewWebhook(notify.Config{URL: c.URL, Token: c.Token})
		if err != nil {
			return o, fmt.Errorf("BERTH_LEASE_WEBHOOK_URL: %w", err)
		}
		o.Webhook = webhook
	}
	if cfg.Nova.URL == "" && cfg.Neutron.URL == "" {
		return o, nil
	}
	var err error
	o.Cloud, err = cloudOf(cfg, id)
	return o, err
}

// cloudOf is what reservations are at Nova and Neutron.
func cloudOf(cfg config.Config, id identity.Authenticator) (*cloud.Cloud, error) {
	how := cloud.Config{Nova: cfg.Nova.URL, Neutron: cfg.Neutron.URL, Token: cfg.Nova.Token}
	if keystone, ok := id.(*identity.Keystone); ok && cfg.Nova.Token == "" {
		how.Fresh = keystone.Fresh
	}
	c, err := cloud.New(how)
	if err != nil {
		return nil, fmt.Errorf("BERTH_NOVA_URL, BERTH_NEUTRON_URL: %w", err)
	}
	return c, nil
}

// startRelay runs the relay, if that is a role, until the function that it returns is called.
func (a *App) startRelay(ctx context.Context, fail func(error)) (stop func()) {
	if !a.has(config.Relay) {
		return func() {}
	}
	r := relay.New(relay.Options{Store: a.store, Client: a.Temporal, Namespace: a.namespace, Metrics: a.registry})
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Run(running); err != nil && running.Err() == nil {
			fail(fmt.Errorf("relay: %w", err))
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// startListening hears what the controller says of its own accord, if it is a role of this process and there is one, until
// the function that it returns is called.
func (a *App) startListening(ctx context.Context) (stop func()) {
	if a.feedback == nil || !a.has(config.Temporal) {
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

// feedbackOf is who hears the controller; nil if there is none.
func feedbackOf(cfg config.ODL, client *odl.Client, s *store.Store) (*feedback.Listener, error) {
	if client == nil {
		return nil, nil
	}
	o := feedback.Options{Store: s, ODL: client, PollInterval: cfg.PollInterval, HostConfigsPath: cfg.HostConfigPath}
	if cfg.Features != "" {
		var err error
		if o.Features, err = odl.ParseFeatures(cfg.Features); err != nil {
			return nil, fmt.Errorf("BERTH_ODL_FEATURES: %w", err)
		}
	}
	return feedback.New(o), nil
}

// startAnswering answers agents over RabbitMQ, and keeps connected to tell them things, as far as that is a role, until the function that it returns is called.
func (a *App) startAnswering(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	if a.agents != nil {
		wait.Go(func() { a.agents.Run(ctx) })
	}
	if a.caster != nil && a.has(config.Temporal) {
		wait.Go(func() { a.caster.Run(ctx) })
	}
	return func() {
		cancel()
		wait.Wait()
	}
}

// agentsOf is who answers agents over RabbitMQ; nil if that is no role of this process.
func (a *App) agentsOf() (*rpc.Server, error) {
	if !a.has(config.RPC) {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	trust, err := rpc.TLSConfig(a.cfg.RabbitMQCAFile)
	if err != nil {
		return nil, fmt.Errorf("BERTH_RABBITMQ_CA_FILE: %w", err)
	}
	return rpc.NewServer(rpc.Options{Store: a.store, Brokers: a.cfg.RabbitMQ, Host: host, TLS: trust, Metrics: a.registry}), nil
}

// casterTo is who tells agents things.
func (a *App) casterTo(cfg config.Config) (*rpc.Publisher, error) {
	trust, err := rpc.TLSConfig(cfg.RabbitMQCAFile)
	if err != nil {
		return nil, fmt.Errorf("BERTH_RABBITMQ_CA_FILE: %w", err)
	}
	return rpc.NewPublisher(rpc.Options{Store: a.store, Brokers: cfg.RabbitMQ, TLS: trust, Metrics: a.registry}), nil
}

// startWorking starts a worker for each task queue, if that is a role, as soon as Temporal and its namespace are
// there: a process may start before its neighbours do. It returns how to stop them.
func (a *App) startWorking(ctx context.Context, fail func(error)) (stop func()) {
	if !a.has(config.Temporal) {
		a.working.Store(true)
		return func() {}
	}
	var started []worker.Worker
	var wait sync.WaitGroup
	wait.Go(func() {
		var err error
		for told := false; ; told = true {
			if started, err = startWorkers(ctx, a.Temporal, a.acts, fail); err == nil {
				a.working.Store(true)
				return
			}
			if !told && ctx.Err() == nil {
				slog.WarnContext(ctx, "the workers cannot start yet", "error", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
		}
	})
	return func() {
		wait.Wait()
		stopWorkers(started)
	}
}

// queues are polled by every process with the role temporal.
var queues = []string{contract.PortQueue, contract.LeaseQueue, contract.JournalQueue}

// stuck is how long a workflow may compute before it counts as deadlocked: as long as the server waits for it. The
// SDK's own second is soon over on a busy machine.
const stuck = 10 * time.Second

// startWorkers starts all workers or none.
func startWorkers(ctx context.Context, c client.Client, acts *activities.Activities, fail func(error)) ([]worker.Worker, error) {
	if err := awaitTemporal(ctx, c); err != nil {
		return nil, err
	}
	if err := schedule(ctx, c); err != nil {
		return nil, err
	}
	worker.SetStickyWorkflowCacheSize(cachedWorkflows)
	var started []worker.Worker
	for _, queue := range queues {
		w := worker.New(c, queue, worker.Options{
			WorkerStopTimeout:            drain,
			DeadlockDetectionTimeout:     stuck,
			WorkflowTaskPollerBehavior:   worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
			ActivityTaskPollerBehavior:   worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
			MaxHeartbeatThrottleInterval: activities.Heartbeat,
			OnFatalError:                 func(err error) { fail(fmt.Errorf("worker of task queue %s: %w", queue, err)) },
		})
		workflows.Register(w, queue)
		w.RegisterActivity(acts)
		if err := w.Start(); err != nil {
			stopWorkers(started)
			return nil, fmt.Errorf("worker of task queue %s: %w", queue, err)
		}
		started = append(started, w)
	}
	return started, nil
}

// stopWorkers lets running tasks end, of all workers at the same time.
func stopWorkers(ws []worker.Worker) {
	var wait sync.WaitGroup
	for _, w := range ws {
		wait.Go(w.Stop)
	}
	wait.Wait()
}
