package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	quietCores = 0.25        // processors that are busier are not quiet
	quietProbe = time.Second // duration of one observation
	clockTick  = 10 * time.Millisecond
)

// awaitQuiet waits until the processors of the machine are quiet, for at most `patience`, and returns how
// many cores were busy in the last observation. Without patience, or without /proc, awaitQuiet returns 0
// immediately.
func awaitQuiet(ctx context.Context, patience time.Duration) (busy float64, err error) {
	for begin := time.Now(); time.Since(begin) < patience; {
		before, err := busyTime()
		if err != nil {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return busy, context.Cause(ctx)
		case <-time.After(quietProbe):
		}
		after, err := busyTime()
		if err != nil {
			return 0, err
		}
		if busy = (after - before).Seconds() / quietProbe.Seconds(); busy < quietCores {
			return busy, nil
		}
	}
	return busy, nil
}

// busyTime returns the CPU time that all processes of the machine have used. On systems without /proc it
// returns 0.
func busyTime() (time.Duration, error) {
	raw, err := os.ReadFile("/proc/stat")
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	const columns = 8 // user nice system idle iowait irq softirq steal
	fields := strings.Fields(first)
	if len(fields) <= columns {
		return 0, fmt.Errorf("too few fields in /proc/stat: %q", first)
	}
	var total time.Duration
	for i, field := range fields[1 : columns+1] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read /proc/stat: %w", err)
		}
		if idle := i == 3 || i == 4; !idle {
			total += time.Duration(ticks) * clockTick
		}
	}
	return total, nil
}
