package harness

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	p, err := parseStat("42 (a (b) c) S 7 42 42 0 -1 4194560 100 200 0 0 10 20 30 40 20 0 1 0 5000 1000 10")
	want := process{
		pid:     42,
		parent:  7,
		name:    "a (b) c",
		cpuTime: time.Second,
	}
	if p != want || err != nil {
		t.Errorf(
			"parse a stat line whose process name contains parentheses: got %+v, error %v; want the process name `a (b) c` and no error",
			p,
			err,
		)
	}
	for _, broken := range []string{"", "42", "42 (a) S", "x (a) S 7 42 42 0 -1 4194560 100 200 0 0 10 20 30 40 20"} {
		if _, err := parseStat(broken); err == nil {
			t.Errorf("parse the broken stat line %q: got no error, want one", broken)
		}
	}
}

func TestComponentOf(t *testing.T) {
	t.Parallel()
	all := map[int]process{
		1: {
			pid:  1,
			name: "init",
		},
		10: {pid: 10, parent: 1, name: "bench"},
		11: {
			pid:    11,
			parent: 10,
			name:   "worker",
			args:   "bin/worker -roles relay,temporal ",
		},
		12: {
			pid:    12,
			parent: 10,
			name:   "bench",
			args:   "bench " + StubCommand,
		},
		20: {
			pid:    20,
			parent: 10,
			name:   "postgres",
			args:   "/usr/lib/postgres -D x",
		},
		21: {
			pid:    21,
			parent: 20,
			name:   "postgres",
			args:   "postgres: temporal temporal_visibility 127.0.0.1(1) idle",
		},
		22: {
			pid:    22,
			parent: 20,
			name:   "postgres",
			args:   "postgres: berth berth 127.0.0.1(2) INSERT",
		},
		25: {
			pid:    25,
			parent: 10,
			name:   "postgres",
			args:   "/usr/lib/postgres -D /x/postgres-temporal/cluster",
		},
		26: {
			pid:    26,
			parent: 25,
			name:   "postgres",
			args:   "postgres: walwriter",
		},
		30: {
			pid:    30,
			parent: 1,
			name:   "postgres",
			args:   "postgres: berth berth",
		},
		31: {pid: 31, parent: 99, name: "gone"},
	}
	components := map[int]string{}
	for pid, p := range all {
		components[pid] = componentOf(all, p, 10)
	}
	want := map[int]string{
		1:  "",
		10: "bench",
		11: "berth relay,temporal",
		12: "stubs",
		20: "postgres",
		21: "postgres of temporal",
		22: "postgres of berth",
		25: "postgres of temporal",
		26: "postgres of temporal",
		30: "",
		31: "",
	}
	if !maps.Equal(components, want) {
		t.Error(cmp.Diff(want, components))
	}
}
