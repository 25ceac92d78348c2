package figure

import (
	"context"
	"sync/atomic"
	"time"

	"berth/bench/dataset"
	"berth/bench/harness"
)

// The numbers of leases and hosts in the database of a cloud that has used reservations for years.
const (
	calendarHosts = 500
	pastLeases    = 100_000
	pendingLeases = 10_000
)

// openLeaseCreates measures POST /leases, ten times a second, in a database with many past and pending
// leases.
func openLeaseCreates(ctx context.Context, s *harness.Stack) (*Subject, error) {
	a, err := s.LoadDataset(ctx,
		dataset.LeaseCalendar(s.ScaleRows(calendarHosts), s.ScaleRows(pastLeases), s.ScaleRows(pendingLeases)))
	if err != nil {
		return nil, err
	}
	begin := time.Now().Add(time.Hour).Truncate(time.Second) // before the first pending lease
	return &Subject{
		setUp: func(ctx context.Context) error { // so that the query plans are cached
			_, err := a.CreateLease(ctx, begin, begin.Add(time.Minute), oneHost())
			begin = begin.Add(10 * time.Minute)
			return err
		},
		MeasureRound: func(ctx context.Context, p harness.Pace) (harness.Sample, error) {
			var n atomic.Int64
			return harness.MeasureTimes(ctx, p, func(ctx context.Context) (time.Duration, error) {
				from := begin.Add(time.Duration(n.Add(1)) * time.Second)
				sent := time.Now()
				_, err := a.CreateLease(ctx, from, from.Add(time.Second), oneHost())
				return time.Since(sent), err
			})
		},
	}, nil
}
