package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"syscall"
	"time"

	"berth/internal/api/agent"
	"berth/internal/api/blazar"
	"berth/internal/api/console"
	"berth/internal/api/journal"
	"berth/internal/api/neutron"
	"berth/internal/api/operator"
	"berth/internal/api/osapi"
	"berth/internal/api/placement"
	"berth/internal/config"
	"berth/internal/identity"
	"berth/internal/inventory"
	"berth/internal/notify"
	"berth/internal/store/agentstore"
	"berth/internal/text"
)

// APIs returns the APIs that a process with the role api serves.
func (a *App) APIs(id identity.Authenticator) []*osapi.API {
	incomplete := inventory.Owner{
		Project: a.cfg.IncompleteConsumer.Project,
		User:    a.cfg.IncompleteConsumer.User,
	}
	apis := []*osapi.API{
		placement.New(placement.Options{
			Store:      a.store.Inventory,
			Identity:   id,
			Policy:     a.policies.Placement,
			Incomplete: incomplete,
			Candidates: placement.Candidates(a.cfg.Candidates),
		}),
		neutron.NewWithPolicy(a.store.Network, id, a.policies.Networking),
		blazar.New(a.leaseOptions(id)),
		agent.New(agent.Options{Store: a.store.Network, Tokens: a.agentTokens(), Identity: id}),
		journal.New(a.store.Journal, a.store.Mirror, id),
		a.newOperatorAPI(id, incomplete),
		a.newConsole(id),
	}
	for _, api := range apis {
		api.Timeout, api.TrustedProxies, api.Audit = a.cfg.RequestTimeout, a.cfg.TrustedProxies, a.auditLog()
	}
	return apis
}

// agentTokens returns the store of the agents' tokens, or nil with BERTH_AUTH=noauth, which accepts every
// token.
func (a *App) agentTokens() *agentstore.Store {
	if a.cfg.Auth == config.Noauth {
		return nil
	}
	return a.store.Agents
}

// newOperatorAPI returns the operators' API, with additional routes: one explains the result of a query for
// allocation candidates, and two are the codec server.
func (a *App) newOperatorAPI(id identity.Authenticator, incomplete inventory.Owner) *osapi.API {
	api := operator.New(operator.Options{
		Inventory:  a.store.Inventory,
		Network:    a.store.Network,
		Agents:     a.store.Agents,
		Outbox:     a.store.Outbox,
		Mirror:     a.store.Mirror,
		Audit:      a.store.Audit,
		Report:     a.store.Report,
		Identity:   id,
		Policies:   a.policies.byAPI(),
		Incomplete: incomplete,
	})
	api.Routes = append(api.Routes, osapi.Route{Method: http.MethodGet, Path: explainPath,
		Handle: osapi.AdminOnly(
			placement.ExplainCandidates(a.store.Inventory, placement.Candidates(a.cfg.Candidates)),
		)})
	api.Routes = append(api.Routes, codecRoutes(a.codec)...)
	return api
}

// newConsole returns the console in the browser.
func (a *App) newConsole(id identity.Authenticator) *osapi.API {
	return console.New(console.Options{
		Network:     a.store.Network,
		Journal:     a.store.Journal,
		Lease:       a.store.Lease,
		Inventory:   a.store.Inventory,
		Outbox:      a.store.Outbox,
		Mirror:      a.store.Mirror,
		Report:      a.store.Report,
		Identity:    id,
		Ports:       neutron.NewPortReader(a.store.Network, a.policies.Networking),
		Trunks:      neutron.NewTrunkReader(a.store.Network, a.policies.Networking),
		Leases:      blazar.LeaseReader{Store: a.store.Lease, Policy: a.policies.Reservation},
		Live:        a.live,
		ProjectLive: a.projectLive,
		TemporalUI:  a.cfg.TemporalUI,
		Namespace:   a.namespace,
	})
}

func (a *App) leaseOptions(id identity.Authenticator) blazar.Options {
	o := blazar.Options{
		Store:    a.store.Lease,
		Identity: id,
		Policy:   a.policies.Reservation,
		Flavor:   a.cloud.Flavor,
		Enforce:  a.newEnforcementCheck(),
	}
	if a.cfg.Nova.URL != "" {
		o.Hypervisors = a.cloud.Hypervisors
	}
	return o
}

// newEnforcementCheck returns the function that asks the enforcement service whether a lease is allowed.
// newEnforcementCheck returns nil if no enforcement service is configured.
func (a *App) newEnforcementCheck() func(context.Context, blazar.Check) string {
	if a.enforcement == nil {
		return nil
	}
	return func(ctx context.Context, c blazar.Check) string {
		return a.enforcement.Check(ctx, c.What, notify.EnforcementRequest{
			User:         c.User,
			Project:      c.Project,
			Lease:        c.Lease,
			CurrentLease: c.Current,
		})
	}
}

// WriteTimeout is the time from the end of a request's header to the end of the response. WriteTimeout is
// longer than the longest BERTH_REQUEST_TIMEOUT.
const WriteTimeout = 60 * time.Second

// defaultStreams is the default of BERTH_HTTP2_MAX_STREAMS.
const defaultStreams = 100

// Limits of a connection with HTTP/2.
const (
	// maxFrame is the size of the largest frame that a client may send, in bytes. A connection keeps a buffer
	// for the largest frame that it has received.
	maxFrame = 16 << 10
	// maxReceiveBuffer is how many bytes of bodies that no handler has read yet a connection, or one of its
	// requests, may keep. The size is near the smallest that HTTP/2 allows.
	maxReceiveBuffer = 64 << 10
	// silentTimeout is the time after which a connection without frames from the client is checked, and the
	// time after which a connection that accepts no bytes is closed. Without it, a client that reads nothing
	// but keeps the connection open would hold its requests for ever.
	silentTimeout = 30 * time.Second
)

// NewHTTPServer returns an HTTP server that adds security headers to the responses of the handler h. The time
// and size limits of the returned server bound the resources that a slow or hostile client can use.
func NewHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           withSecurityHeaders(h),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      WriteTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          defaultStreams,
			MaxReadFrameSize:              maxFrame,
			MaxReceiveBufferPerConnection: maxReceiveBuffer,
			MaxReceiveBufferPerStream:     maxReceiveBuffer,
			SendPingTimeout:               silentTimeout,
			WriteByteTimeout:              silentTimeout,
		},
		ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
}

// Listen returns a listener on the address of BERTH_LISTEN. The returned listener is a jsonListener, which
// translates error responses into JSON.
func Listen(address string) (net.Listener, error) { return listen("BERTH_LISTEN", address, nil) }

// listen returns a jsonListener on an address with limits for its connections, or without limits if `limit`
// is nil. The error that listen returns names the setting that contains the address.
func listen(setting, address string, limit *connectionLimit) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, listenError(setting, address, err)
	}
	if limit != nil {
		l = limitedListener{l, limit}
	}
	return jsonListener{l}, nil
}

// listenError returns an error that names the setting.
func listenError(setting, address string, err error) error {
	if _, port, split := net.SplitHostPort(address); split == nil && errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf(
			"port %s (%s) is already in use; set it to another host:port, or to port 0 for a free one",
			port,
			setting,
		)
	}
	return fmt.Errorf("%s=%s: %w", setting, address, err)
}

// operatorPrefixes are the prefixes of the operators' API and of the console, without the leading slash. With
// BERTH_OPERATOR_LISTEN, only this address serves them.
var operatorPrefixes = []string{operatorPrefix, consolePrefix}

// Prefixes without the leading slash.
const (
	operatorPrefix = "operator/v1"
	consolePrefix  = "console"
)

// newHandlers returns the handler of BERTH_LISTEN and the handler of BERTH_OPERATOR_LISTEN. If
// BERTH_OPERATOR_LISTEN is not set, the handler of BERTH_LISTEN has the routes of operators too. The handlers
// route a request by the first segments of the path, exactly as the client has sent the path. They do not
// clean the path, because OpenStack answers 404 to paths such as //v2.0/ports.
func (a *App) newHandlers(id identity.Authenticator) (everyone, operators http.Handler, err error) {
	served := a.servedAPIs(id)
	apis := a.measuredAPIs(served)
	metrics := newMetricsHandler(withHelp{a.registry})
	health := map[string]http.Handler{"/healthz": getOnly(serveHealth), "/readyz": getOnly(a.ready.ServeHTTP)}
	forOperators := maps.Clone(health)
	forOperators["/metrics"] = getOnly(metrics.ServeHTTP)
	if a.cfg.OperatorListen == "" {
		err = addDocuments(forOperators, served, anyDocument)
		return routeByPath(forOperators, routeByPrefix(apis)), nil, err
	}
	err = errors.Join(
		addDocuments(health, served, func(name string) bool { return !isOperatorDocument(name) }),
		addDocuments(forOperators, served, isOperatorDocument),
	)
	operatorAPIs := map[string]http.Handler{"debug/pprof": profiles()}
	for _, prefix := range operatorPrefixes {
		if h, ok := apis[prefix]; ok {
			operatorAPIs[prefix] = h
			delete(apis, prefix)
		}
	}
	everyone = routeByPath(health, routeByPrefix(apis))
	operators = routeByPath(forOperators, routeByPrefix(operatorAPIs))
	return everyone, operators, err
}

// servedAPIs returns the APIs that the process serves: none without the role api.
func (a *App) servedAPIs(id identity.Authenticator) []*osapi.API {
	if !a.hasRole(config.API) {
		return nil
	}
	return a.APIs(id)
}

// measuredAPIs returns the APIs by their prefix without the leading slash, with CORS and with metrics of
// their requests.
func (a *App) measuredAPIs(served []*osapi.API) map[string]http.Handler {
	requests := newHTTPMetrics(a.registry, a.traces, requestLog{slog.Default(), a.cfg.LogReads})
	routes := map[string]http.Handler{}
	if len(served) == 0 {
		return routes
	}
	projects, hosts := a.newRates()
	for _, api := range served {
		api.Rate, api.HostRate = projects, hosts
		prefix := strings.TrimPrefix(api.Prefix, "/")
		h := http.Handler(api)
		// no page of another site may read the console with the cookie of an operator
		if prefix != consolePrefix {
			h = osapi.CORS(a.cfg.CORS).Wrap(api)
		}
		if prefix == operatorPrefix {
			h = a.withCodecClients(api, h)
		}
		routes[prefix] = requests.measure(prefix, h)
	}
	return routes
}

// profiles returns the handler of Go's profiles below /debug/pprof/.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return getOnly(mux.ServeHTTP)
}

// strictTransport is the value of the header Strict-Transport-Security: for a year, browsers use only https
// for this host.
const strictTransport = "max-age=31536000"

// withSecurityHeaders returns a handler that adds headers for browsers to every response of the handler h.
// Clients other than browsers ignore these headers.
func withSecurityHeaders(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.TLS != nil {
			w.Header().Set("Strict-Transport-Security", strictTransport)
		}
		h.ServeHTTP(w, r)
	})
}

// routeByPath passes a request to the handler of exactly its path. A request to any other path is passed to
// the handler `others`.
func routeByPath(paths map[string]http.Handler, others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h, ok := paths[r.URL.Path]; ok {
			h.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// routeByPrefix passes a request to the route with the longest prefix of whole path segments.
func routeByPrefix(routes map[string]http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for prefix := strings.TrimPrefix(r.URL.Path, "/"); prefix != ""; prefix = parentPath(prefix) {
			if h, ok := routes[prefix]; ok {
				h.ServeHTTP(w, r)
				return
			}
		}
		writeError(w, http.StatusNotFound, "There is no API at this path.")
	})
}

// writeError writes an error of the server itself, which belongs to no API.
func writeError(w http.ResponseWriter, status int, message string) {
	osapi.WriteJSON(w, status, map[string]any{"error": map[string]any{"code": status, "message": message}})
}

func parentPath(path string) string {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)]
}

// maxMethod is the length to which the message about a method that is not allowed shortens the method. The
// longest method that IANA has registered has 17 characters.
const maxMethod = 20

// getOnly returns a handler that answers 405 to methods other than GET and HEAD, and that passes GET and HEAD
// to the handler h.
func getOnly(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			writeError(w, http.StatusMethodNotAllowed, "The method "+text.Excerpt(r.Method, maxMethod)+" is not allowed for this resource.")
			return
		}
		h(w, r)
	})
}
