package agent

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// maxPendingOfHost limits the reports that the gateway processes at the same time for the agents of one host,
// so that other hosts always find places among maxPending. A host may have one full request.
const maxPendingOfHost = maxReports

// hostShares contains what the requests of each host use. A host without requests is not in hostShares.
type hostShares struct {
	mutex  sync.Mutex
	byHost map[string]*hostShare
}

// hostShare is what the running requests of one host use.
type hostShare struct {
	reports int                 // in processing, at most maxPendingOfHost
	ports   *semaphore.Weighted // ports that are being written, at most portsAtOnce
}

// acquire reserves places for the reports of a request of a host. The result is nil if the host has too few
// places left. The caller must call release with the same number of reports.
func (s *hostShares) acquire(host string, reports int) *hostShare {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	share := s.byHost[host]
	if share == nil {
		share = &hostShare{ports: semaphore.NewWeighted(portsAtOnce)}
	}
	if share.reports+reports > maxPendingOfHost {
		return nil
	}
	share.reports += reports
	s.byHost[host] = share
	return share
}

func (s *hostShares) release(host string, reports int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	share := s.byHost[host]
	if share.reports -= reports; share.reports == 0 {
		delete(s.byHost, host)
	}
}

// write calls f while at most portsAtOnce ports of the host are being written. A nil hostShare, of a caller
// that is no agent of one host, has no limit.
func (s *hostShare) write(ctx context.Context, f func() error) error {
	if s == nil {
		return f()
	}
	if err := s.ports.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.ports.Release(1)
	return f()
}
