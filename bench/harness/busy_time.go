package harness

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ReadBusyTime returns the CPU time that all processes of the machine have used, also those that are no
// components of the harness. On systems without /proc, the result of ReadBusyTime is empty.
func ReadBusyTime() (CPUTimes, error) {
	raw, err := os.ReadFile("/proc/stat")
	if os.IsNotExist(err) {
		return CPUTimes{}, nil
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
	return CPUTimes{"machine": total}, nil
}
