package figure

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"berth/bench/harness"
	"berth/internal/contract"
)

// pendingLeaseLead is the time from now to the start of the first lease. No other figure creates a lease that
// begins so late, so no other lease holds a host at the same time.
const pendingLeaseLead = 100 * time.Hour

// openPendingLeases measures leases from their POST, after which they are PENDING, until their workflows are
// started. Each client leases a host of its own, so that no client waits for a row that another one has
// locked. The leases stay: berth would check the hosts of deleted leases again during later measurements.
func openPendingLeases(ctx context.Context, s *harness.Stack) (*Subject, error) {
	l := &leaseFigure{
		Stack:     s,
		delivered: harness.NewRowWatcher(ctx, s.Rows, harness.PollInterval, queryPendingNotes, s.Fail),
	}
	begin := time.Now().Add(pendingLeaseLead).Truncate(time.Second)
	var count atomic.Int64
	return &Subject{
		setUp: func(ctx context.Context) error { return l.ensureHosts(ctx, s.Clients) },
		op: func(ctx context.Context, client int) (int, error) {
			// each lease takes one second, and the next one begins when it ends
			from := begin.Add(time.Duration(count.Add(1)) * time.Second)
			host := oneHost()
			host["hypervisor_properties"] = fmt.Sprintf(`["==", "$hypervisor_hostname", "leased-%d"]`, client)
			id, err := s.API.CreateLease(ctx, from, from.Add(time.Second), host)
			if err != nil {
				return 0, err
			}
			return 1, l.delivered.Await(ctx, contract.LeaseID(id))
		},
	}, nil
}
