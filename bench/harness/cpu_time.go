package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPUTimes is the CPU time that each component has used.
type CPUTimes map[string]time.Duration

// Since returns the CPU time that each component has used after an earlier call of ReadCPUTimes. Since leaves
// out components that have used no CPU time in between.
func (c CPUTimes) Since(earlier CPUTimes) CPUTimes {
	used := CPUTimes{}
	for component, d := range c {
		if d > earlier[component] {
			used[component] = d - earlier[component]
		}
	}
	return used
}

// clockTick is the unit of CPU time in /proc: USER_HZ is always 100 on Linux.
const clockTick = 10 * time.Millisecond

// process holds values from /proc/PID/stat.
type process struct {
	pid, parent int
	name        string
	args        string
	cpuTime     time.Duration // includes the CPU time of children that have ended
}

// ReadCPUTimes returns the CPU time of the bench process and its descendants, by component (such as berth or
// PostgreSQL). On systems without /proc the result of ReadCPUTimes is empty.
func ReadCPUTimes() (CPUTimes, error) {
	all, err := readProcesses()
	if err != nil {
		return nil, err
	}
	total := CPUTimes{}
	for _, p := range all {
		if name := componentOf(all, p, os.Getpid()); name != "" {
			total[name] += p.cpuTime
		}
	}
	return total, nil
}

// serverProcesses returns the IDs of the descendants of the bench process, except the stubs.
func serverProcesses() ([]int, error) {
	all, err := readProcesses()
	if err != nil {
		return nil, err
	}
	var servers []int
	for _, p := range all {
		if name := componentOf(all, p, os.Getpid()); name != "" && name != ComponentBench && name != ComponentStubs {
			servers = append(servers, p.pid)
		}
	}
	return servers, nil
}

// readProcesses returns all processes of the machine by their ID.
func readProcesses() (map[int]process, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	all := map[int]process{}
	for _, dir := range dirs {
		if p, ok := readProcess(dir); ok { // ok is false if the process has ended meanwhile
			all[p.pid] = p
		}
	}
	return all, nil
}

// Names of components. A process of berth is the component "berth " with its roles, and a process of another
// program has the name of the program.
const (
	ComponentBench            = "bench" // the client
	ComponentStubs            = "stubs"
	ComponentPostgres         = "postgres" // background processes such as the WAL writer
	ComponentPostgresBerth    = "postgres of berth"
	ComponentPostgresTemporal = "postgres of temporal"
	ComponentBerth            = "berth "
)

// componentOf returns the component to which a process belongs. componentOf returns an empty string if the
// process p is neither the process with the PID `self` nor a descendant of that process.
func componentOf(all map[int]process, p process, self int) string {
	server := p // the child of the bench process that p descends from
	for at := p; at.pid != self; {
		parent, ok := all[at.parent]
		if !ok {
			return ""
		}
		server, at = at, parent
	}
	_, roles, berth := strings.Cut(p.args, " -roles ")
	switch {
	case p.pid == self:
		return ComponentBench
	case strings.Contains(p.args, StubCommand):
		return ComponentStubs
	case berth:
		return ComponentBerth + strings.TrimSpace(roles)
	case p.name != "postgres":
		return p.name
	case strings.HasPrefix(p.args, "postgres: temporal "), strings.Contains(server.args, "/"+temporalPostgres+"/"):
		return ComponentPostgresTemporal
	case strings.HasPrefix(p.args, "postgres: berth "):
		return ComponentPostgresBerth
	default:
		return ComponentPostgres
	}
}

// ResidentMemory returns the resident memory of berth's process in bytes. On systems without /proc,
// ResidentMemory returns 0.
func (a *API) ResidentMemory() (int64, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	listen := "BERTH_LISTEN=" + strings.TrimPrefix(a.Base, "http://") + "\x00"
	for _, dir := range dirs {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !strings.Contains(string(environ), listen) {
			continue
		}
		pages, err := os.ReadFile(filepath.Join(dir, "statm"))
		if err != nil {
			return 0, err
		}
		var size, resident int64
		_, err = fmt.Sscan(string(pages), &size, &resident)
		return resident * int64(os.Getpagesize()), err
	}
	return 0, nil
}

func readProcess(dir string) (process, bool) {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return process{}, false
	}
	args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	p, err := parseStat(string(stat))
	p.args = string(bytes.ReplaceAll(args, []byte{0}, []byte{' '}))
	return p, err == nil
}

// parseStat parses /proc/PID/stat. In /proc/PID/stat the process name stands in parentheses, and the process
// name may itself contain parentheses.
func parseStat(stat string) (process, error) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return process{}, fmt.Errorf("no process name in the stat line %q", stat)
	}
	var p process
	var err error
	if p.pid, err = strconv.Atoi(strings.TrimSpace(stat[:open])); err != nil {
		return process{}, err
	}
	p.name = stat[open+1 : end]
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 15 {
		return process{}, fmt.Errorf("too few fields in the stat line %q", stat)
	}
	if p.parent, err = strconv.Atoi(fields[1]); err != nil {
		return process{}, err
	}
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return process{}, err
		}
		p.cpuTime += time.Duration(ticks) * clockTick
	}
	return p, nil
}
