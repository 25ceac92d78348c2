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

// CPUUse is the use of the processors while a function runs.
type CPUUse struct {
	Seconds float64  // duration of the function
	CPU     CPUTimes // of the bench process and its descendants
	// cores that other programs of the machine have used on average
	OtherCores float64
}

// WatchCPU calls the function and returns how the processors were used meanwhile.
func WatchCPU(do func() error) (CPUUse, error) {
	machine, err := ReadBusyTime()
	if err != nil {
		return CPUUse{}, err
	}
	own, err := ReadCPUTimes()
	if err != nil {
		return CPUUse{}, err
	}
	begin := time.Now()
	if err := do(); err != nil {
		return CPUUse{}, err
	}
	use := CPUUse{Seconds: time.Since(begin).Seconds()}
	machineNow, err := ReadBusyTime()
	if err != nil {
		return use, err
	}
	ownNow, err := ReadCPUTimes()
	use.CPU = ownNow.Since(own)
	others := machineNow.Since(machine).total() - use.CPU.total()
	use.OtherCores = max(0, others.Seconds()) / use.Seconds
	return use, err
}

// total returns the sum of the CPU times.
func (c CPUTimes) total() (sum time.Duration) {
	for _, t := range c {
		sum += t
	}
	return sum
}
