package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.temporal.io/sdk/client"

	"berth/activities"
	"berth/internal/api/placement"
	"berth/internal/api/rpc"
	"berth/internal/cloud"
	"berth/internal/config"
	"berth/internal/feedback"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/lease"
	"berth/internal/notify"
	"berth/internal/odl"
	"berth/internal/store"
)

// drain is how long running requests and tasks have to end when the process stops.
const drain = 10 * time.Second

// app is a wired process of the roles that its configuration names.
type App struct {
	cfg       config.Config
	store     *store.Store
	policy    *policy.Policy
	Temporal  client.Client
	namespace string // of temporal
	acts      *activities.Activities
	cloud     *cloud.Cloud // nil: none is configured
	// controller is where changes are mirrored; nil if none is configured.
	controller *odl.Client
	// enforcement decides on leases; nil if nobody does.
	enforcement *notify.Enforcement
	registry    *prometheus.Registry
	feedback    *feedback.Listener // nil: no controller is configured
	agents      *rpc.Server        // nil: this process does not answer agents over RabbitMQ
	caster      *rpc.Publisher     // nil: agents are told of nothing over RabbitMQ
	listener    net.Listener
	http        *http.Server
	working     atomic.Bool // the workers poll
	stopping    atomic.Bool
}

// Open wires a process and listens, but serves nothing yet.
func Open(ctx context.Context, cfg config.Config, environ []string) (*App, error) {
	id, err := authenticator(cfg)
	if err != nil {
		return nil, err
	}
	rules, err := OpenPolicy(cfg)
	if err != nil {
		return nil, err
	}
	reached, err := neighbours(cfg, id)
	if err != nil {
		return nil, err
	}
	a := &App{cfg: cfg, policy: rules, registry: prometheus.NewRegistry()}
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if a.Temporal, a.namespace, err = dial(environment(environ), a.registry, seat(cfg.Listen)); err != nil {
		return nil, err
	}
	if a.store, err = store.Open(ctx, cfg.DatabaseURL); err != nil {
		a.Temporal.Close()
		return nil, err
	}
	if err := a.governNetworks(cfg); err != nil {
		a.close()
		return nil, err
	}
	a.store.Limit(lease.Limits{Cleaning: cfg.Lease.CleaningTime, Longest: cfg.Lease.MaxDuration, Exempt: cfg.Lease.MaxDurationExempt,
		Lead: cfg.Lease.BeforeEnd, Shuffled: cfg.Lease.RandomHosts})
	if a.enforcement = reached.Enforcement; cfg.Lease.Webhook.URL != "" || a.enforcement != nil {
		a.store.Tell()
	}
	if cfg.Nova.URL != "" {
		a.store.Pool()
	}
	if len(cfg.RabbitMQ) > 0 {
		a.store.Announce()
		if a.caster, err = a.casterTo(cfg); err != nil {
			a.close()
			return nil, err
		}
		reached.Agents = a.caster
	}
	reached.Store = a.store
	reached.Healing, reached.Patience, reached.Snapshot = cfg.Lease.HealingInterval, cfg.Lease.RetryTimeout, cfg.Lease.Snapshot
	a.cloud, _ = reached.Cloud.(*cloud.Cloud)
	reached.KeepJournal, reached.SyncEvery = cfg.Journal.Retention, cfg.ODL.SyncInterval
	if a.controller, _ = reached.ODL.(*odl.Client); a.controller != nil {
		a.controller.ShareBreaker(a.store.Breaker(cfg.ODL.URL))
	}
	watchJournal(&reached, a.controller, a.registry)
	a.registry.MustRegister(newJournalCollector(a.store))
	reached.Keep = store.Retention{Age: cfg.History.MaxAge, Rows: cfg.History.MaxRows}
	a.acts = activities.New(reached)
	if a.feedback, err = feedbackOf(cfg.ODL, a.controller, a.store); err != nil {
		a.close()
		return nil, err
	}
	watchFeedback(a.feedback, a.registry)
	if a.agents, err = a.agentsOf(); err != nil {
		a.close()
		return nil, err
	}
	if a.listener, err = Listen(cfg.Listen); err != nil {
		a.close()
		return nil, err
	}
	a.http = NewHTTPServer(a.handler(id))
	return a, nil
}

func Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, listenError(address, err)
	}
	return jsonListener{l}, nil
}

// authenticator is how callers are told apart.
func authenticator(cfg config.Config) (identity.Authenticator, error) {
	if cfg.Auth == config.Noauth {
		return identity.Noauth{}, nil
	}
	return identity.NewKeystone(identity.Service{
		AuthURL:       cfg.Service.AuthURL,
		Username:      cfg.Service.Username,
		Password:      cfg.Service.Password,
		Project:       cfg.Service.Project,
		UserDomain:    cfg.Service.UserDomain,
		ProjectDomain: cfg.Service.ProjectDomain,
		CAFile:        cfg.Service.CAFile,
	})
}

// OpenPolicy is who may do what: the defaults of the APIs that ask it, and the operator's rules.
func OpenPolicy(cfg config.Config) (*policy.Policy, error) {
	p, err := policy.Open(policy.Options{File: cfg.Policy.File, Old: !cfg.Policy.EnforceNewDefaults}, placement.Policy...)
	if err != nil {
		return nil, fmt.Errorf("BERTH_POLICY_FILE: %w", err)
	}
	return p, nil
}

func (a *App) close() {
	if a.caster != nil {
		a.caster.Close()
	}
	a.Temporal.Close()
	a.store.Close()
}

// Handler returns the handler of all routes.
func (a *App) Handler() http.Handler { return a.http.Handler }

// Address is where the process listens.
func (a *App) Address() string { return a.listener.Addr().String() }

func (a *App) has(role string) bool { return slices.Contains(a.cfg.Roles, role) }

// Run serves until ctx ends or something fails for good, then stops in order: nothing new comes in, then nothing
// is delivered any more, then the workers finish, then the connections close.
func (a *App) Run(ctx context.Context) error {
	defer a.close()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	slog.InfoContext(ctx, "serving", "address", a.Address(), "roles", a.cfg.Roles)
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := a.http.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("HTTP: %w", err))
		}
	}()
	stopRelay := a.startRelay(ctx, fail)
	stopListening := a.startListening(ctx)
	stopAnswering := a.startAnswering(ctx)
	stopWorking := a.startWorking(ctx, fail)
	looked := a.lookAgain(ctx)

	<-ctx.Done()
	a.stopping.Store(true)
	slog.Info("stopping")
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := a.http.Shutdown(last); err != nil {
		_ = a.http.Close()
	}
	<-served
	stopListening()
	stopAnswering()
	stopRelay()
	stopWorking()
	<-looked
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
