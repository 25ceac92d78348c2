// Package agent is the gateway for agents that do not speak Temporal: they tell over HTTP that they live and which
// ports they have done their part for, and get a verdict on each report.
package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store"
)

// maxReports is how many reports a request may carry.
const maxReports = 1000

// parallel is how many ports of one request are settled at a time.
const parallel = 4

// inHand is how many reports of all requests together are settled or wait for it. Agents that come with more keep them
// and come again: a restart of many at once is spread out rather than piled up.
const inHand = 8 * maxReports

// New is the agents' gateway on that store.
func New(s *store.Store, id identity.Authenticator) *osapi.API {
	g := gateway{s, semaphore.NewWeighted(inHand)}
	return &osapi.API{
		Prefix: "/agent/v1", Identity: id, Fail: fail,
		Routes: []osapi.Route{
			{Method: http.MethodPost, Path: "/state", Handle: privileged(g.state)},
			{Method: http.MethodPost, Path: "/reports", Handle: privileged(g.reports)},
		},
	}
}

type gateway struct {
	store *store.Store
	room  *semaphore.Weighted // for reports
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

// privileged lets only administrators and services in: who reports decides that a port is ACTIVE.
func privileged(h osapi.Handler) osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		if !identity.From(r.Context()).Admin() {
			return 0, nil, osapi.Fault(http.StatusForbidden, "", "Only agents with the admin or service role may report.")
		}
		return h(r)
	}
}

func bad(format string, args ...any) error {
	return osapi.Fault(http.StatusBadRequest, "", format, args...)
}

type stateBody struct {
	Type           string          `json:"agent_type"`
	Host           string          `json:"host"`
	Binary         string          `json:"binary"`
	Topic          string          `json:"topic"`
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
	for _, f := range []struct{ name, value string }{{"agent_type", b.Type}, {"host", b.Host}, {"binary", b.Binary}, {"topic", b.Topic}} {
		if len(f.value) > 255 || strings.ContainsRune(f.value, 0) {
			return 0, nil, bad("Invalid input: '%s' is longer than 255 bytes or contains a NUL character.", f.name)
		}
	}
	if b.Type == "" || b.Host == "" {
		return 0, nil, bad("Invalid input: 'agent_type' and 'host' are required.")
	}
	configurations, err := configurations(b.Configurations)
	if err != nil {
		return 0, nil, err
	}
	status, err := g.store.ReportState(r.Context(), network.State{Type: b.Type, Host: b.Host, Binary: b.Binary, Topic: b.Topic, Configurations: configurations})
	return http.StatusOK, stateAnswer{status}, err
}

// configurations is the dictionary in a form that the database takes: no NUL characters, no numbers beyond a float.
func configurations(raw json.RawMessage) (json.RawMessage, error) {
	m := map[string]any{}
	if len(raw) > 0 && json.Unmarshal(raw, &m) != nil || bytes.Contains(raw, []byte(`\u0000`)) {
		return nil, bad("Invalid input: 'configurations' is not a dictionary without NUL characters.")
	}
	if m == nil {
		m = map[string]any{}
	}
	return json.Marshal(m)
}

type report struct {
	Port     string `json:"port"`
	Entity   string `json:"entity"`
	Host     string `json:"host"`
	Event    string `json:"event"`
	Revision int64  `json:"revision"`
}

type reportsBody struct {
	Reports []report `json:"reports"`
}

// What became of a report.
const (
	done    = "done"    // nobody blocks the port any more
	waiting = "waiting" // others still block it
	gone    = "gone"    // no such port; there is nothing to repeat
	ignored = "ignored" // it completed nothing: a duplicate, another host's port, or nobody waited for the entity
)

type verdict struct {
	Port      string   `json:"port"`
	Result    string   `json:"result"`
	Status    string   `json:"status"`
	Remaining []string `json:"remaining"`
}

type reportsAnswer struct {
	Verdicts []verdict `json:"verdicts"`
}

// reports settles each port once for all reports on it. It answers after everything is committed; a failure of
// the database is the request's, and repeating the whole is harmless.
func (g gateway) reports(r *http.Request) (int, any, error) {
	var b reportsBody
	if err := osapi.Decode(r, &b); err != nil {
		return 0, nil, err
	}
	if b.Reports == nil {
		return 0, nil, bad("Invalid input: 'reports' is required.")
	}
	if len(b.Reports) > maxReports {
		return 0, nil, bad("Invalid input: %d reports are more than %d.", len(b.Reports), maxReports)
	}
	if !g.room.TryAcquire(int64(len(b.Reports))) {
		osapi.Header(r.Context()).Set("Retry-After", "1")
		return 0, nil, osapi.Fault(http.StatusTooManyRequests, "", "More than %d reports are being settled. Send these again.", inHand)
	}
	defer g.room.Release(int64(len(b.Reports)))
	verdicts := make([]verdict, len(b.Reports))
	of := map[uuid.UUID][]int{}
	for i, item := range b.Reports {
		verdicts[i] = verdict{Port: item.Port, Result: ignored, Remaining: []string{}}
		if id, ok := osapi.UUID(strings.ToLower(item.Port)); ok {
			of[id] = append(of[id], i)
		}
	}
	group, ctx := errgroup.WithContext(r.Context())
	group.SetLimit(parallel)
	for id, places := range of {
		group.Go(func() error { return g.settle(ctx, id, b.Reports, places, verdicts) })
	}
	if err := group.Wait(); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, reportsAnswer{verdicts}, nil
}

// settle reports to one port and fills in the verdicts at those places.
func (g gateway) settle(ctx context.Context, id uuid.UUID, reports []report, places []int, verdicts []verdict) error {
	given := make([]network.Report, len(places))
	for i, place := range places {
		r := reports[place]
		given[i] = network.Report{Entity: r.Entity, Host: r.Host, Event: r.Event, Revision: r.Revision}
	}
	standing, err := g.store.ReportPort(ctx, id, given)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	for i, place := range places {
		v := &verdicts[place]
		switch {
		case err != nil:
			v.Result = gone
			continue
		case standing.Accepted[i] && len(standing.Waiting) == 0:
			v.Result = done
		case standing.Accepted[i]:
			v.Result = waiting
		}
		v.Status, v.Remaining = standing.Status, standing.Remaining()
	}
	return nil
}
