package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"berth/bench/harness"
)

// clockTick is the unit of the CPU times in /proc/stat.
const clockTick = 10 * time.Millisecond

// readBusyTime returns the CPU time that all processes of the machine have used: Placement's processes and
// those of PostgreSQL are no components of the harness. On systems without /proc it returns 0.
func readBusyTime() (harness.CPUTimes, error) {
	raw, err := os.ReadFile("/proc/stat")
	if os.IsNotExist(err) {
		return harness.CPUTimes{}, nil
	}
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	const columns = 8 // user nice system idle iowait irq softirq steal
	fields := strings.Fields(first)
	if len(fields) <= columns {
		return nil, fmt.Errorf("too few fields in /proc/stat: %q", first)
	}
	var total time.Duration
	for i, field := range fields[1 : columns+1] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read /proc/stat: %w", err)
		}
		if idle := i == 3 || i == 4; !idle {
			total += time.Duration(ticks) * clockTick
		}
	}
	return harness.CPUTimes{"machine": total}, nil
}
