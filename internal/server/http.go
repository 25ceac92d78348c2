package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"berth/internal/api/agent"
	"berth/internal/api/blazar"
	"berth/internal/api/journal"
	"berth/internal/api/neutron"
	"berth/internal/api/operator"
	"berth/internal/api/osapi"
	"berth/internal/api/placement"
	"berth/internal/config"
	"berth/internal/identity"
	"berth/internal/inventory"
	"berth/internal/notify"
)

// APIs are what a process with the role api serves.
func (a *App) APIs(id identity.Authenticator) []*osapi.API {
	incomplete := inventory.Owner{Project: a.cfg.IncompleteConsumer.Project, User: a.cfg.IncompleteConsumer.User}
	return []*osapi.API{
		placement.New(placement.Options{Store: a.store, Identity: id, Policy: a.policy, Incomplete: incomplete,
			Candidates: placement.Candidates(a.cfg.Candidates)}),
		neutron.New(a.store, id),
		blazar.New(blazar.Options{Store: a.store, Identity: id, Flavor: a.cloud.Flavor, Enforce: a.enforce()}),
		agent.New(a.store, id),
		journal.New(a.store, id),
		operator.New(a.store, id, incomplete),
	}
}

// enforce asks who decides on leases, if anybody does.
func (a *App) enforce() func(context.Context, blazar.Check) string {
	if a.enforcement == nil {
		return nil
	}
	return func(ctx context.Context, c blazar.Check) string {
		return a.enforcement.Check(ctx, c.What, notify.EnforcementRequest{User: c.User, Project: c.Project, Lease: c.Lease, CurrentLease: c.Current})
	}
}

// WriteTimeout is the time that a request has from the end of its header to the end of its answer.
const WriteTimeout = 60 * time.Second

// NewHTTPServer returns a server whose limits bound what a slow or hostile client may cost.
func NewHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      WriteTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
}

// listenError names the setting behind a port that is taken.
func listenError(address string, err error) error {
	if _, port, split := net.SplitHostPort(address); split == nil && errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %s (BERTH_LISTEN) is already in use; set it to another host:port, or to port 0 for a free one", port)
	}
	return fmt.Errorf("BERTH_LISTEN=%s: %w", address, err)
}

// handler dispatches by the first segment of the path, as it was sent: an API knows its own paths, and a
// cleaned one would answer where OpenStack says 404.
func (a *App) handler(id identity.Authenticator) http.Handler {
	requests := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "berth_http_request_duration_seconds",
		Help:    "Time to answer a request.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	}, []string{"api", "method", "code"})
	a.registry.MustRegister(requests)
	routes := map[string]http.Handler{
		"healthz": get(healthz),
		"readyz":  get(a.readyz),
		"metrics": get(promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn)}).ServeHTTP),
	}
	if a.has(config.API) {
		for _, api := range a.APIs(id) {
			routes[strings.TrimPrefix(api.Prefix, "/")] = measured(osapi.CORS(a.cfg.CORS).Wrap(api), requests.MustCurryWith(prometheus.Labels{"api": strings.TrimPrefix(api.Prefix, "/")}))
		}
	}
	return dispatch(routes)
}

// dispatch hands a request to the route with the longest prefix of whole segments.
func dispatch(routes map[string]http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for prefix := strings.TrimPrefix(r.URL.Path, "/"); prefix != ""; prefix = parent(prefix) {
			if h, ok := routes[prefix]; ok {
				h.ServeHTTP(w, r)
				return
			}
		}
		osapi.WriteJSON(w, http.StatusNotFound, map[string]any{"error": map[string]any{
			"code": http.StatusNotFound, "message": "There is no API at this path."}})
	})
}

func parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)]
}

// get refuses other methods than GET and HEAD.
func get(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			osapi.WriteJSON(w, http.StatusMethodNotAllowed, map[string]any{"error": map[string]any{
				"code": http.StatusMethodNotAllowed, "message": "The method " + r.Method + " is not allowed for this resource."}})
			return
		}
		h(w, r)
	})
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader is http.ResponseWriter's.
func (w *recorder) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the writer underneath.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func measured(h http.Handler, o prometheus.ObserverVec) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(rec, r)
		o.WithLabelValues(method(r.Method), strconv.Itoa(rec.status)).Observe(time.Since(begin).Seconds())
	})
}

// method bounds the label: a client may send any word as a method.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return m
	default:
		return "other"
	}
}
