package figure

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"berth/bench/harness"
	"berth/internal/devstack"
)

const (
	// greedyClients is the number of clients of one project that send requests as fast as they can.
	greedyClients = 16
	// projectRate is the setting BERTH_PROJECT_RATE of the fairness figures, in requests per second.
	projectRate = 100
)

// openFairness measures POST /networks of one project, ten times a second, while the given number of clients
// of another project send the same request as fast as they can.
func openFairness(greedy int) func(context.Context, *harness.Stack) (*Subject, error) {
	return func(ctx context.Context, s *harness.Stack) (*Subject, error) {
		modest, err := startFairBerth(ctx, s)
		if err != nil {
			return nil, err
		}
		rival := &harness.API{Base: modest.Base, Token: "greedy", HTTP: modest.HTTP}
		var sent, failed atomic.Int64
		return &Subject{
			MeasureRound: func(ctx context.Context, p harness.Pace) (harness.Sample, error) {
				ctx, cancel := context.WithCancel(ctx)
				var rivals sync.WaitGroup
				defer rivals.Wait()
				defer cancel()
				for range greedy {
					rivals.Go(func() {
						for ctx.Err() == nil {
							_, err := rival.Create(ctx, "network", harness.Attributes{"name": "bench"})
							if ctx.Err() != nil {
								return // the end of the round may have interrupted the request
							}
							sent.Add(1)
							if err != nil {
								failed.Add(1)
							}
						}
					})
				}
				return harness.MeasureTimes(ctx, p, func(ctx context.Context) (time.Duration, error) {
					begin := time.Now()
					_, err := modest.Create(ctx, "network", harness.Attributes{"name": "bench"})
					return time.Since(begin), err
				})
			},
			Details: func(context.Context) ([]harness.Detail, error) {
				if greedy == 0 {
					return nil, nil
				}
				return []harness.Detail{
					{Name: "requests of the greedy clients", Value: float64(sent.Load())},
					{Name: "of which failed, for example because of the rate", Value: float64(failed.Load())},
				}, nil
			},
		}, nil
	}
}

// startFairBerth starts an API with its own database, whose callers have projects and a limited rate. The
// fairness figures share it.
func startFairBerth(ctx context.Context, s *harness.Stack) (*harness.API, error) {
	const name = "fairness"
	if a := s.Datasets[name]; a != nil {
		return a, nil
	}
	keystone, err := devstack.Serve(0, http.HandlerFunc(serveKeystone))
	if err != nil {
		return nil, err
	}
	s.OnClose(keystone.Stop)
	database, err := s.CreateDatabase(ctx, name)
	if err != nil {
		return nil, err
	}
	a, err := s.StartBerth(
		ctx,
		name,
		database,
		"api",
		"BERTH_AUTH=keystone",
		"OS_AUTH_URL="+keystone.URL+"/v3",
		"OS_USERNAME=berth",
		"OS_PASSWORD=berth",
		"OS_PROJECT_NAME=service",
		fmt.Sprint("BERTH_PROJECT_RATE=", projectRate),
	)
	if err != nil {
		return nil, err
	}
	a.Token = "modest"
	s.Datasets[name] = a
	return a, nil
}

// serveKeystone is the part of Keystone's API that berth uses to validate tokens. The text of a token is also
// the name of its user and project. berth's own user has the role service, all others have the role member.
func serveKeystone(w http.ResponseWriter, r *http.Request) {
	name, role := cmp.Or(r.Header.Get("X-Subject-Token"), "berth"), "member"
	status := http.StatusOK
	switch {
	case !strings.HasSuffix(r.URL.Path, "/auth/tokens"):
		http.NotFound(w, r)
		return
	case r.Method == http.MethodPost:
		role, status = "service", http.StatusCreated
	}
	w.Header().Set("X-Subject-Token", name)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	domain := harness.Attributes{"id": "default", "name": "Default"}
	now := time.Now().UTC()
	_ = json.NewEncoder(w).Encode(harness.Attributes{"token": harness.Attributes{
		"methods":    []string{"password"},
		"issued_at":  now.Format(time.RFC3339),
		"expires_at": now.Add(time.Hour).Format(time.RFC3339),
		"user":       harness.Attributes{"id": name, "name": name, "domain": domain},
		"project":    harness.Attributes{"id": name, "name": name, "domain": domain},
		"roles":      []harness.Attributes{{"id": role, "name": role}},
	}})
}
