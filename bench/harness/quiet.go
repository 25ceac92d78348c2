package harness

import (
	"context"
	"time"
)

// Before each measurement, bench waits until the servers have finished the work that the previous measurement
// has left, for example workflows that still have to end. Otherwise that work would slow down the next
// measurement.
const (
	QuietCPU   = 0.25        // share of one core; servers that use less are quiet
	quietProbe = time.Second // duration of one observation
)

// AwaitQuiet waits until the components of which `read` returns the CPU times use less than QuietCPU, and
// returns the share of one core that they used in the last observation. It gives up after the timeout, and
// does not wait if the timeout is 0. sleep waits.
func AwaitQuiet(
	ctx context.Context,
	timeout time.Duration,
	read func() (CPUTimes, error),
	sleep func(context.Context, time.Duration),
) (share float64, err error) {
	before, err := read()
	if err != nil {
		return 0, err
	}
	for waited := time.Duration(0); waited < timeout && ctx.Err() == nil; waited += quietProbe {
		sleep(ctx, quietProbe)
		now, err := read()
		if err != nil {
			return 0, err
		}
		if share = now.Since(before).total().Seconds() / quietProbe.Seconds(); share < QuietCPU {
			return share, nil
		}
		before = now
	}
	return share, context.Cause(ctx)
}
