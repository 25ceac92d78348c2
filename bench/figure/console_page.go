package figure

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"berth/bench/dataset"
	"berth/bench/harness"
)

// pagedPorts is the number of ports in the database of the measurement of the console.
const pagedPorts = 100_000

// consolePage is a page of the console, with the token of the reader.
type consolePage struct{ name, token, path string }

// openConsolePages measures pages of the console in a database with many ports: the first page of an
// administrator, the pages of a project that has three fifths of the ports, and the page of a port that
// waits.
func openConsolePages(ctx context.Context, s *harness.Stack) (*Subject, error) {
	a, err := s.LoadDataset(ctx, dataset.PortsOfProjects(s.ScaleRows(pagedPorts)))
	if err != nil {
		return nil, err
	}
	const member, port = "ann:big", "/console/ports/00000000-0000-4000-8000-000000000000"
	pages := []consolePage{
		{"Waiting of an administrator", "admin", "/console/"},
		{"Waiting of a project", member, "/console/"},
		{"Ports of a project", member, "/console/ports"},
		{"a port, for an administrator", "admin", port},
		{"a port, for its project", member, port},
	}
	var next atomic.Int64
	return &Subject{
		op: func(ctx context.Context, _ int) (int, error) {
			return 1, pages[next.Add(1)%int64(len(pages))].read(ctx, a.Base)
		},
		Details: func(ctx context.Context) (all []harness.Detail, err error) {
			for _, p := range pages {
				median, err := p.medianTime(ctx, a.Base)
				if err != nil {
					return nil, err
				}
				all = append(all, harness.Detail{Name: "median time of the page " + p.name + " in ms", Value: median})
			}
			return all, nil
		},
	}, nil
}

// read reads the page.
func (p consolePage) read(ctx context.Context, base string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+p.path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("X-Auth-Token", p.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", p.path, answer.Status, body)
	}
	return err
}

// medianTime reads the page repeatedly, and returns the median of the times in milliseconds.
func (p consolePage) medianTime(ctx context.Context, base string) (float64, error) {
	times := make([]time.Duration, 101)
	for i := range times {
		begin := time.Now()
		if err := p.read(ctx, base); err != nil {
			return 0, err
		}
		times[i] = time.Since(begin)
	}
	slices.Sort(times)
	return float64(times[len(times)/2]) / float64(time.Millisecond), nil
}
