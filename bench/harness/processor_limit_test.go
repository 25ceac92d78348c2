package harness

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProcessorLimit_WritesTheFilesOfBothVersions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rootFile string // a file that tells the version, or a folder
		folder   string
		limited  map[string]string
		free     map[string]string
	}{
		"cgroup v1": {
			rootFile: "cpu/tasks",
			folder:   "cpu/test",
			limited:  map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"},
			free:     map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "-1"},
		},
		"cgroup v2": {
			rootFile: "cgroup.controllers",
			folder:   "test",
			limited:  map[string]string{"cpu.max": "50000 100000"},
			free:     map[string]string{"cpu.max": "max 100000"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			file := filepath.Join(root, tt.rootFile)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, nil, 0o644); err != nil {
				t.Fatal(err)
			}

			l, err := NewProcessorLimit(root, "test")
			if err != nil {
				t.Fatal(err)
			}

			for cores, want := range map[float64]map[string]string{0.5: tt.limited, 0: tt.free} {
				if err := l.Set(cores); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, readFiles(t, filepath.Join(root, tt.folder))); d != "" {
					t.Errorf("files of the cgroup with a limit of %g cores (-want +got):\n%s", cores, d)
				}
			}
		})
	}
}

func readFiles(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(raw)
	}
	return all
}

func TestProcessorLimit_AddsProcessesThatStartMeanwhile(t *testing.T) {
	t.Parallel()
	l := &ProcessorLimit{folder: t.TempDir()}
	lists, calls := [][]int{{11}, {11, 12}, {11, 12}}, 0

	err := l.add(func() ([]int, error) {
		calls++
		return lists[calls-1], nil
	})

	if got := readFiles(t, l.folder)["cgroup.procs"]; err != nil || calls != len(lists) || got != "12" {
		t.Errorf("add a process and one that starts meanwhile: got %d lists, last process %q, error %v; want %d, 12, no error",
			calls, got, err, len(lists))
	}
}
