package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is the CPU time that each part of the system has spent.
type usage map[string]time.Duration

// since is what was spent after an earlier look. Parts that spent nothing are left out.
func (u usage) since(earlier usage) usage {
	spent := usage{}
	for who, d := range u {
		if d > earlier[who] {
			spent[who] = d - earlier[who]
		}
	}
	return spent
}

// tick is the unit of CPU time in /proc, which Linux fixes for its users.
const tick = 10 * time.Millisecond

// process is what /proc says about one.
type process struct {
	pid, parent int
	name        string
	args        string
	spent       time.Duration // its own and that of children that have ended
}

// spent adds up the CPU time of this process and everything below it. Where there is no /proc, it is empty.
func spent() (usage, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	all := map[int]process{}
	for _, dir := range dirs {
		if p, ok := readProcess(dir); ok { // it may have ended meanwhile
			all[p.pid] = p
		}
	}
	total := usage{}
	for _, p := range all {
		if who := part(all, p, os.Getpid()); who != "" {
			total[who] += p.spent
		}
	}
	return total, nil
}

// part names the part of the system that a process belongs to: empty if it is not below us.
func part(all map[int]process, p process, us int) string {
	for at := p; at.pid != us; {
		parent, ok := all[at.parent]
		if !ok {
			return ""
		}
		at = parent
	}
	switch {
	case p.pid == us:
		return "bench"
	case strings.Contains(p.args, standInCommand):
		return "stand-ins"
	case p.name != "postgres":
		return p.name
	case strings.HasPrefix(p.args, "postgres: temporal "):
		return "postgres of temporal"
	case strings.HasPrefix(p.args, "postgres: berth "):
		return "postgres of berth"
	default:
		return "postgres" // writes the log and the pages of all
	}
}

// resident is the memory of berth's process, in bytes; 0 where there is no /proc.
func (a *api) resident() (int64, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	environment := "BERTH_LISTEN=" + strings.TrimPrefix(a.base, "http://") + "\x00"
	for _, dir := range dirs {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !strings.Contains(string(environ), environment) {
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

// parseStat reads /proc/PID/stat. The name is in parentheses and may hold anything, parentheses too.
func parseStat(stat string) (process, error) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return process{}, fmt.Errorf("no process: %q", stat)
	}
	var p process
	var err error
	if p.pid, err = strconv.Atoi(strings.TrimSpace(stat[:open])); err != nil {
		return process{}, err
	}
	p.name = stat[open+1 : end]
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 15 {
		return process{}, fmt.Errorf("short: %q", stat)
	}
	if p.parent, err = strconv.Atoi(fields[1]); err != nil {
		return process{}, err
	}
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return process{}, err
		}
		p.spent += time.Duration(ticks) * tick
	}
	return p, nil
}
