// Package agent is the HTTP gateway for agents that use neither Temporal nor RabbitMQ. An agent sends its
// heartbeats and its reports about ports to the gateway. The answer to a report contains a verdict: whether
// the report has removed a provisioning block of the port. A port with a provisioning block is not ACTIVE
// yet.
package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/panics"
	"berth/internal/store/agentstore"
	"berth/internal/store/db"
	"berth/internal/store/portstore"
)

// maxReports limits the reports in one request.
const maxReports = 1000

// portsAtOnce is how many ports of one request, and of all requests of the agents of one host, are written in
// parallel.
const portsAtOnce = 4

// maxPending limits the number of reports that the gateway processes at the same time, so that the restart of
// many agents does not overload the database. The gateway answers a request beyond maxPending with a 429, and
// the agent then sends the request again.
const maxPending = 8 * maxReports

// Options contains the dependencies of the gateway.
type Options struct {
	Store    *portstore.Store
	Identity identity.Authenticator
	// the tokens that the gateway accepts in addition to those of Identity; nil: none
	Tokens *agentstore.Store
}

// New returns the agents' gateway.
func New(o Options) *osapi.API {
	api := &osapi.API{Prefix: "/agent/v1"}
	g, id := gateway{
		o.Store,
		semaphore.NewWeighted(maxPending),
		&hostShares{byHost: map[string]*hostShare{}},
		func(c identity.Caller, requests int) { api.HostRate.Charge(c, requests) },
	}, o.Identity
	if o.Tokens != nil {
		id = tokenAuthenticator{o.Tokens, o.Identity, identity.NewTokenLimit()}
	}
	api.Identity, api.Fail, api.Before = id, fail, osapi.RequireJSON
	api.Routes = []osapi.Route{
		{
			Method:     http.MethodPost,
			Path:       "/state",
			Handle:     agentOnly(g.state),
			Repeatable: true,
			Unaudited:  true,
		},
		{
			Method:     http.MethodPost,
			Path:       "/reports",
			Handle:     agentOnly(g.reports),
			Repeatable: true,
		},
	}
	return api
}

type gateway struct {
	store   *portstore.Store
	pending *semaphore.Weighted // reports in processing, at most maxPending
	shares  *hostShares
	charge  func(c identity.Caller, requests int) // counts a request as further ones
}

type failure struct {
	Error failureDetail `json:"error"`
}

type failureDetail struct {
	Code    int    `json:"code"`
	Title   string `json:"title"`
	Message string `json:"message"`
}

func fail(w http.ResponseWriter, _ *http.Request, e *osapi.Error) {
	osapi.WriteJSON(w, e.Status, failure{failureDetail{e.Status, http.StatusText(e.Status), e.Message}})
}

// agentOnly refuses all callers except agents with a token of their host, administrators and services,
// because a report can make a port ACTIVE.
func agentOnly(h osapi.Handler) osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		if c := identity.From(r.Context()); c.AgentHost == "" && !c.AdminOrService() {
			return 0, nil, osapi.Fault(http.StatusForbidden, "",
				"Only agents with a token of their host, and callers with the admin or service role, may report.")
		}
		return h(r)
	}
}

func badRequest(format string, args ...any) error {
	return osapi.Fault(http.StatusBadRequest, "", format, args...)
}

type stateBody struct {
	Type           string          `json:"agent_type"`
	Host           string          `json:"host"`
	Binary         string          `json:"binary"`
	Topic          string          `json:"topic"`
	Zone           string          `json:"availability_zone"`
	Configurations json.RawMessage `json:"configurations"`
}

type stateAnswer struct {
	Status string `json:"status"`
}

func (g gateway) state(r *http.Request) (int, any, error) {
	var b stateBody
	if err := osapi.Decode(r, &b); err != nil {
		return 0, nil, err
	}
	for _, f := range []struct{ name, value string }{{"agent_type", b.Type}, {"host", b.Host}, {"binary", b.Binary}, {"topic", b.Topic}, {"availability_zone", b.Zone}} {
		if len(f.value) > 255 || !network.IsSingleLine(f.value) {
			return 0, nil, badRequest(
				"Invalid input: '%s' is longer than 255 bytes or contains a control character.",
				f.name,
			)
		}
	}
	if b.Type == "" || b.Host == "" {
		return 0, nil, badRequest("Invalid input: 'agent_type' and 'host' are required.")
	}
	if err := checkHost(r.Context(), b.Host); err != nil {
		return 0, nil, err
	}
	configurations, err := configurations(b.Configurations)
	if err != nil {
		return 0, nil, err
	}
	status, err := g.store.ReportState(r.Context(), network.AgentState{
		Type:           b.Type,
		Host:           b.Host,
		Binary:         b.Binary,
		Topic:          b.Topic,
		Zone:           b.Zone,
		Configurations: configurations,
	})
	return http.StatusOK, stateAnswer{status}, translate(err)
}

// translate returns a 409 for a host with too many agents, and a 400 for another fault.
func translate(err error) error {
	var fault *network.Fault
	switch {
	case !errors.As(err, &fault):
		return err
	case fault.Kind == network.QuotaExceeded:
		return osapi.Fault(http.StatusConflict, "", "%s", fault.Message)
	default:
		return badRequest("Invalid input: %s", fault.Message)
	}
}

// configurations decodes the JSON dictionary `raw` and encodes the dictionary again, so that PostgreSQL
// accepts the JSON text. configurations refuses NUL characters and numbers that do not fit into a float64.
func configurations(raw json.RawMessage) (json.RawMessage, error) {
	m := map[string]any{}
	if len(raw) > 0 && json.Unmarshal(raw, &m) != nil || bytes.Contains(raw, []byte(`\u0000`)) {
		return nil, badRequest("Invalid input: 'configurations' is not a dictionary without NUL characters.")
	}
	if m == nil {
		m = map[string]any{}
	}
	return json.Marshal(m)
}

type report struct {
	Port           string `json:"port"`
	Entity         string `json:"entity"`
	Host           string `json:"host"`
	Event          string `json:"event"`
	Revision       int64  `json:"revision"`
	Owner          string `json:"owner"`
	TimeoutSeconds int64  `json:"timeout_seconds"`
	Fatal          bool   `json:"fatal"`
}

type reportsBody struct {
	Reports []report `json:"reports"`
}

// Results of a report.
const (
	done    = "done"    // the port waits for no other entity
	waiting = "waiting" // the port waits for other entities
	gone    = "gone"    // the port does not exist; the agent stops reporting it
	// the report had no effect: a duplicate, a port of another host, or an entity without a block
	ignored = "ignored"
)

type verdict struct {
	Port      string   `json:"port"`
	Result    string   `json:"result"`
	Status    string   `json:"status"`
	Remaining []string `json:"remaining"`
	Stale     bool     `json:"stale,omitempty"` // the report is about an earlier binding of the port
}

type reportsAnswer struct {
	Verdicts []verdict `json:"verdicts"`
}

// reports handles a batch of agents' reports. For each port, the function reports applies all reports about
// the port in one transaction. The function reports answers after the transactions of all ports are
// committed. If a transaction fails, the whole request fails; the agent can then safely send the same request
// again.
func (g gateway) reports(r *http.Request) (int, any, error) {
	var b reportsBody
	if err := osapi.Decode(r, &b); err != nil {
		return 0, nil, err
	}
	if b.Reports == nil {
		return 0, nil, badRequest("Invalid input: 'reports' is required.")
	}
	if len(b.Reports) > maxReports {
		return 0, nil, badRequest("Invalid input: %d reports are more than %d.", len(b.Reports), maxReports)
	}
	for _, item := range b.Reports {
		if err := checkReport(r.Context(), item); err != nil {
			return 0, nil, err
		}
	}
	share, release, err := g.admit(r.Context(), max(len(b.Reports), 1))
	if err != nil {
		return 0, nil, err
	}
	defer release()
	verdicts := make([]verdict, len(b.Reports))
	byPort := map[uuid.UUID][]int{}
	for i, item := range b.Reports {
		verdicts[i] = verdict{Port: item.Port, Result: ignored, Remaining: []string{}}
		if id, ok := osapi.UUID(strings.ToLower(item.Port)); ok {
			byPort[id] = append(byPort[id], i)
		}
	}
	group, ctx := errgroup.WithContext(r.Context())
	group.SetLimit(portsAtOnce)
	for id, indexes := range byPort {
		group.Go(func() (err error) {
			defer panics.Recover(ctx, "the reports about a port", &err)
			return share.write(ctx,
				func() error { return g.reportPort(ctx, id, b.Reports, indexes, verdicts) })
		})
	}
	if err := group.Wait(); err != nil {
		return 0, nil, err
	}
	g.charge(identity.From(r.Context()), network.FurtherRequests(len(b.Reports)))
	return http.StatusOK, reportsAnswer{verdicts}, nil
}

// admit reserves places for a number of reports. If too few places are left, for all callers or for the host
// of the caller, admit returns a
// 429. The caller must call release when the reports are processed.
func (g gateway) admit(ctx context.Context, reports int) (share *hostShare, release func(), err error) {
	host, releaseShare := identity.From(ctx).AgentHost, func() {}
	if host != "" {
		if share = g.shares.acquire(host, reports); share == nil {
			return nil, nil, tooManyReports("reports of the host", maxPendingOfHost)
		}
		releaseShare = func() { g.shares.release(host, reports) }
	}
	if !g.pending.TryAcquire(int64(reports)) {
		releaseShare()
		return nil, nil, tooManyReports("reports", maxPending)
	}
	return share, func() { g.pending.Release(int64(reports)); releaseShare() }, nil
}

func tooManyReports(what string, limit int) error {
	return osapi.Fault(
		http.StatusTooManyRequests, "", "More than %d %s are being processed. Send the request again.",
		limit, what,
	).RetryIn(1)
}

// reportPort writes the reports about one port. The parameter `indexes` contains the indexes of the port's
// reports in `reports`; reportPort sets the verdicts at the same indexes in `verdicts`. An agent with a token
// of its host learns the status of a port only if the port is bound to this host or if one of the agent's
// reports has changed the port.
func (g gateway) reportPort(
	ctx context.Context,
	id uuid.UUID,
	reports []report,
	indexes []int,
	verdicts []verdict,
) error {
	agent := identity.From(ctx).AgentHost
	given := make([]network.Report, len(indexes))
	for i, index := range indexes {
		r := reports[index]
		given[i] = network.Report{
			Entity:         r.Entity,
			Host:           r.Host,
			Event:          r.Event,
			Revision:       r.Revision,
			HostOnly:       agent != "",
			Owner:          r.Owner,
			TimeoutSeconds: r.TimeoutSeconds,
			Fatal:          r.Fatal,
		}
	}
	status, err := g.store.ReportPort(ctx, id, given)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return err
	}
	visible := agent == "" || status.Host == agent || slices.Contains(status.Accepted, true)
	for i, index := range indexes {
		v := &verdicts[index]
		switch {
		case err != nil:
			v.Result = gone
			continue
		case status.Accepted[i] && len(status.Waiting) == 0:
			v.Result = done
		case status.Accepted[i]:
			v.Result = waiting
		default:
			v.Stale = i < len(status.Stale) && status.Stale[i]
		}
		if visible {
			v.Status, v.Remaining = status.Status, status.Remaining()
		}
	}
	return nil
}
