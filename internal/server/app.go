package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.temporal.io/sdk/client"

	"berth/activities"
	"berth/internal/api/console"
	"berth/internal/api/rpc"
	"berth/internal/cloud"
	"berth/internal/config"
	"berth/internal/delivery"
	"berth/internal/feedback"
	"berth/internal/identity"
	"berth/internal/notify"
	"berth/internal/odl"
	"berth/internal/payloadcodec"
	"berth/internal/reconciler"
	"berth/internal/relay"
	"berth/internal/store"
	"berth/internal/store/inventorystore"
	"berth/internal/tracing"
)

// shutdownTimeout is the maximum time for which running requests and tasks continue after the process has
// begun to stop.
const shutdownTimeout = 10 * time.Second

// App is a process with the roles that its configuration names. Open connects the process to the services
// that it needs; Run serves requests and tasks.
type App struct {
	cfg       config.Config
	store     *store.Store
	policies  Policies
	keystone  *identity.Keystone // nil with BERTH_AUTH=noauth
	Temporal  client.Client      // shared by the relay and the Temporal workers
	namespace string             // name of the Temporal namespace
	codec     payloadcodec.Codec // encrypts the payloads in Temporal
	// with the role relay: runs; with the role temporal: activities use it to deliver notes
	relay           *relay.Relay
	reconciler      *reconciler.Reconciler // runs with the role relay
	direct          *delivery.Direct       // runs with the role relay
	activities      *activities.Activities
	activityMetrics *activityMetrics
	cloud           *cloud.Cloud        // nil if neither Nova nor Neutron is configured
	odl             *odl.Client         // nil if no controller is configured
	enforcement     *notify.Enforcement // nil if no enforcement service is configured
	registry        *prometheus.Registry
	traces          *tracing.Traces
	feedback        *feedback.Listener     // nil if no controller is configured
	rpcServer       *rpc.Server            // nil without the role rpc
	publisher       *rpc.Publisher         // nil without RabbitMQ, or without the roles temporal and relay
	main            *endpoint              // on BERTH_LISTEN
	refusedConns    *prometheus.CounterVec // connections over a limit
	abortedRequests prometheus.Counter     // of HTTP/2, over a limit
	operators       *endpoint              // on BERTH_OPERATOR_LISTEN; nil without this setting
	live            *console.Live          // the live pages of the console for administrators
	projectLive     *console.Live          // the live pages of projects
	ready           *readinessProbe        // answers /readyz
	workersStarted  atomic.Bool            // also true without the role temporal
	stopping        atomic.Bool
}

// Open connects to the database, creates all clients and listens on the HTTP address. The listener accepts
// connections before Run is called, but only Run answers requests.
func Open(ctx context.Context, cfg config.Config, environ []string) (*App, error) {
	registry := prometheus.NewRegistry()
	services := newServiceMetrics(registry)
	id, err := newAuthenticator(cfg, services)
	if err != nil {
		return nil, err
	}
	rules, err := OpenPolicies(cfg)
	if err != nil {
		return nil, err
	}
	options, err := newClients(cfg, id, services)
	if err != nil {
		return nil, err
	}
	a := &App{
		cfg:         cfg,
		policies:    rules,
		registry:    registry,
		live:        console.NewLive(),
		projectLive: console.NewProjectLive(),
	}
	a.ready = newReadinessProbe(a.checkReadiness, a.stopping.Load)
	a.keystone, _ = id.(*identity.Keystone)
	registerKeystoneMetrics(a.keystone, a.registry)
	registerBuildMetric(a.registry)
	a.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if a.traces, err = openTraces(cfg.Traces); err != nil {
		return nil, err
	}
	if err := registerCredentialMetric(cfg, environ, a.registry); err != nil {
		return nil, err
	}
	if err := a.dialTemporal(ctx, environment(environ)); err != nil {
		return nil, err
	}
	settings, err := storeConfig(cfg, options.Enforcement != nil)
	if err != nil {
		a.Temporal.Close()
		return nil, err
	}
	settings.Lease.OnFinished = registerLatenessMetric(a.registry)
	if a.store, err = store.Open(ctx, cfg.DatabaseURL, settings); err != nil {
		a.Temporal.Close()
		return nil, err
	}
	if err := a.connect(id, options); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// connect creates the clients and listeners that an App needs in addition to its store and its Temporal
// client.
func (a *App) connect(id identity.Authenticator, options activities.Options) error {
	cfg := a.cfg
	a.enforcement = options.Enforcement
	a.cloud, _ = options.Cloud.(*cloud.Cloud)
	a.odl, _ = options.ODL.(*odl.Client)
	var err error
	if len(cfg.RabbitMQ) > 0 && (a.hasRole(config.Temporal) || a.hasRole(config.Relay)) {
		if a.publisher, err = a.newPublisher(); err != nil {
			return err
		}
		options.Agents = a.publisher
	}
	a.shareStore()
	a.relay = relay.New(relay.Options{
		Store:        a.store.Outbox,
		Client:       a.Temporal,
		Namespace:    a.namespace,
		Metrics:      a.registry,
		Tracer:       a.traces.Tracer(),
		HideProjects: a.hidesProjects(),
		Versioned:    a.cfg.WorkerDeployment.Name != "",
	})
	a.reconciler = reconciler.New(reconciler.Options{
		DB:             a.store.DB,
		Store:          a.store.Outbox,
		Client:         a.Temporal,
		Namespace:      a.namespace,
		EnsureSchedule: func(ctx context.Context) error { return a.sweep().create(ctx, a.Temporal) },
		Metrics:        a.registry,
		Overdue:        a.store.Report.Overdue,
		RepairUsage:    a.store.Inventory.RepairUsage,
		HideProjects:   a.hidesProjects(),
	})
	a.direct = delivery.NewDirect(
		delivery.Sender{Recorded: a.store.Notifications, Nova: options.Nova, Agents: options.Agents},
		a.registry,
	)
	options.Store, options.Notes = a.store, a.relay
	options.HealingWindow, options.CloudRetryTime = cfg.Lease.HealingInterval, cfg.Lease.RetryTimeout
	options.SnapshotByDefault = cfg.Lease.Snapshot
	options.JournalRetention, options.FullSyncInterval = cfg.Journal.Retention, cfg.ODL.SyncInterval
	options.AuditInterval, options.AuditRepair = cfg.ODL.AuditInterval, cfg.ODL.AuditRepair
	options.MaxEntryFailures = cfg.ODL.RetryCount
	options.HistoryRetention = inventorystore.Retention{Age: cfg.History.MaxAge, Rows: cfg.History.MaxRows}
	options.RequireSignatures, options.HideProjects = cfg.RequiresSignatures(), a.hidesProjects()
	registerRefusalMetric(&options, a.registry)
	registerJournalMetrics(&options, a.odl, a.registry)
	a.registerStoreMetrics()
	a.activities, a.activityMetrics = activities.New(options), newActivityMetrics(a.registry)
	if a.feedback, err = newFeedbackListener(cfg.ODL, a.odl, a.store); err != nil {
		return err
	}
	registerFeedbackMetrics(a.feedback, a.registry)
	if a.rpcServer, err = a.newRPCServer(); err != nil {
		return err
	}
	certificates, err := openCertificateFiles(cfg.TLS, a.registry)
	if err != nil {
		return err
	}
	return a.listen(certificates, id)
}

// shareStore lets the clients of Nova, Neutron and OpenDaylight read from the store what they need.
func (a *App) shareStore() {
	a.cloud.ReadConsumers(a.store.Lease.ReservationConsumers)
	a.cloud.Reread(a.store.Lease.RereadCloudReservation)
	if a.odl != nil {
		a.odl.ShareBreaker(a.store.Journal.Breaker(a.cfg.ODL.URL))
	}
}

// listen creates the endpoints. If listen returns an error, it leaves no address occupied.
func (a *App) listen(certificates *certificateFiles, id identity.Authenticator) error {
	a.refusedConns, a.abortedRequests = newConnectionMetric(a.registry), newAbortMetric(a.registry)
	everyone, operators, err := a.newHandlers(id)
	if err == nil {
		err = a.refuseForeignPages(&everyone, &operators)
	}
	if err != nil {
		return err
	}
	if a.main, err = a.listenOn("BERTH_LISTEN", a.cfg.Listen, certificates, everyone); err != nil {
		return err
	}
	a.main.server.RegisterOnShutdown(a.stopStreams)
	if a.cfg.OperatorListen == "" {
		return nil
	}
	if a.operators, err = a.listenOn("BERTH_OPERATOR_LISTEN", a.cfg.OperatorListen, certificates, operators); err != nil {
		_ = a.main.listener.Close()
		return err
	}
	a.operators.server.RegisterOnShutdown(a.stopStreams)
	return nil
}

// stopStreams ends the streams of the console.
func (a *App) stopStreams() {
	a.live.Stop()
	a.projectLive.Stop()
}

// endpoints returns the addresses on which the process answers.
func (a *App) endpoints() []*endpoint {
	if a.operators == nil {
		return []*endpoint{a.main}
	}
	return []*endpoint{a.main, a.operators}
}

// newAuthenticator returns the authenticator that BERTH_AUTH names.
func newAuthenticator(cfg config.Config, services *serviceMetrics) (identity.Authenticator, error) {
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
		Wrap:          services.measure("keystone"),
	})
}

func (a *App) close() {
	if a.publisher != nil {
		a.publisher.Close()
	}
	a.Temporal.Close()
	a.store.Close()
	a.traces.Close()
}

// Wrap replaces the handler of each address by the handler that the function `wrap` returns. Wrap exists for
// tests, which call it before Run.
func (a *App) Wrap(wrap func(http.Handler) http.Handler) {
	for _, e := range a.endpoints() {
		e.server.Handler = wrap(e.server.Handler)
	}
}

// Handler returns the handler of the routes on BERTH_LISTEN.
func (a *App) Handler() http.Handler { return a.main.server.Handler }

// Address returns the host:port of BERTH_LISTEN on which the process listens.
func (a *App) Address() string { return a.main.address() }

// URL returns the URL of the process without a path: https if the process has a TLS certificate, otherwise
// http.
func (a *App) URL() string { return a.main.url() }

// OperatorURL returns the URL at which operators reach the process: the URL of the separate address for
// operators if the process has one, otherwise URL.
func (a *App) OperatorURL() string {
	if a.operators == nil {
		return a.URL()
	}
	return a.operators.url()
}

func (a *App) hasRole(role string) bool { return slices.Contains(a.cfg.Roles, role) }

// Run serves requests and tasks until ctx ends or a part of the process fails permanently. Before Run
// returns, it stops the parts of the process in this order: the HTTP server, the relay and the other loops,
// the Temporal workers (after their running tasks have ended), and the connections.
func (a *App) Run(ctx context.Context) error {
	defer a.close()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	stopHTTP := a.startHTTP(ctx, fail)
	stopRelay := a.startRelay(ctx, fail)
	stopReconciler := a.startReconciler(ctx)
	stopFeedback := a.startFeedback(ctx)
	stopRPC := a.startRPC(ctx)
	stopWorkers := a.startTemporalWorkers(ctx, fail)
	stopTakeover := a.startLeaseTakeover(ctx)
	stopAuditLog := a.startAuditLog(ctx)
	stopConflictCounts := a.startConflictCounts(ctx)
	portsNudged := a.startNudgingWaitingPorts(ctx)

	<-ctx.Done()
	a.stopping.Store(true)
	slog.Info("stopping")
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	stopHTTP(shutdown)
	stopAuditLog()
	stopConflictCounts()
	stopReconciler()
	stopFeedback()
	stopRPC()
	stopRelay()
	stopTakeover()
	stopWorkers()
	<-portsNudged
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
