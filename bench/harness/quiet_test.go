package harness

import (
	"context"
	"testing"
	"time"
)

func TestAwaitQuiet(t *testing.T) {
	t.Parallel()
	const timeout = 90 * time.Second
	for name, tt := range map[string]struct {
		perSecond []time.Duration // CPU time of each second; the last one repeats
		wait      time.Duration
		share     float64
	}{
		"servers are quiet":            {[]time.Duration{50 * time.Millisecond}, time.Second, 0.05},
		"servers become quiet":         {[]time.Duration{2 * time.Second, time.Second, 100 * time.Millisecond}, 3 * time.Second, 0.1},
		"servers never become quiet":   {[]time.Duration{time.Second}, timeout, 1},
		"the machine has no CPU times": {[]time.Duration{0}, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var waited, used time.Duration
			second := 0
			read := func() (CPUTimes, error) { return CPUTimes{"server": used}, nil }
			sleep := func(_ context.Context, d time.Duration) {
				waited += d
				used += tt.perSecond[min(second, len(tt.perSecond)-1)]
				second++
			}

			share, err := AwaitQuiet(t.Context(), timeout, read, sleep)

			if err != nil || waited != tt.wait || share != tt.share {
				t.Errorf(
					"await quiet servers: waited %s, last share %.2f, error %v; want %s, %.2f, no error",
					waited, share, err, tt.wait, tt.share,
				)
			}
		})
	}
}
