package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// ProcessorLimit is a cgroup of Linux, of version 1 or 2, that limits the CPU time of all its processes
// together.
type ProcessorLimit struct {
	folder string
	// cgroup v2 has the quota and the period in one file
	v2 bool
}

// CgroupRoot is the folder in which Linux shows the cgroups.
const CgroupRoot = "/sys/fs/cgroup"

// quotaPeriod is the time in which the processes may use the quota, as for containers.
const quotaPeriod = 100 * time.Millisecond

// NewProcessorLimit creates a cgroup with the name below the root folder of the cgroups. The new cgroup has
// no processes and no limit. NewProcessorLimit returns an error if this process may not create a cgroup.
func NewProcessorLimit(root, name string) (*ProcessorLimit, error) {
	l := &ProcessorLimit{folder: filepath.Join(root, "cpu", name)}
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		l = &ProcessorLimit{folder: filepath.Join(root, name), v2: true}
		if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+cpu"), 0o644); err != nil {
			return nil, fmt.Errorf("use the CPU controller of cgroup v2: %w", err)
		}
	}
	if err := os.Mkdir(l.folder, 0o755); err != nil {
		return nil, fmt.Errorf("create a cgroup for the processors: %w", err)
	}
	return l, nil
}

// Set limits the processes of the cgroup to a number of cores; 0 means no limit.
func (l *ProcessorLimit) Set(cores float64) error {
	period := strconv.FormatInt(quotaPeriod.Microseconds(), 10)
	quota := strconv.FormatInt(int64(cores*float64(quotaPeriod.Microseconds())), 10)
	switch {
	case l.v2 && cores == 0:
		return l.write("cpu.max", "max "+period)
	case l.v2:
		return l.write("cpu.max", quota+" "+period)
	case cores == 0:
		quota = "-1"
	}
	return errors.Join(l.write("cpu.cfs_period_us", period), l.write("cpu.cfs_quota_us", quota))
}

// AddServers moves all servers of the bench process into the cgroup, and with them the processes that these
// servers will start. The bench process and the stubs stay where they are.
func (l *ProcessorLimit) AddServers() error { return l.add(serverProcesses) }

// add moves the processes that `list` returns. It repeats the list until it contains no further process,
// because a server may start a process meanwhile.
func (l *ProcessorLimit) add(list func() ([]int, error)) error {
	moved := map[int]bool{}
	for before := -1; len(moved) > before; {
		before = len(moved)
		all, err := list()
		if err != nil {
			return err
		}
		for _, pid := range all {
			if moved[pid] {
				continue
			}
			moved[pid] = true
			// ESRCH: the process has ended meanwhile
			if err := l.write("cgroup.procs", strconv.Itoa(pid)); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return nil
}

func (l *ProcessorLimit) write(file, value string) error {
	if err := os.WriteFile(filepath.Join(l.folder, file), []byte(value), 0o644); err != nil {
		return fmt.Errorf("limit the processors: %w", err)
	}
	return nil
}

// Close deletes the cgroup. All its processes must have ended; the kernel may notice this a little later.
func (l *ProcessorLimit) Close() error {
	const attempts = 100
	var err error
	for range attempts {
		if err = os.Remove(l.folder); !errors.Is(err, syscall.EBUSY) {
			break
		}
		Pause(context.Background(), 20*time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("delete the cgroup for the processors: %w", err)
	}
	return nil
}
