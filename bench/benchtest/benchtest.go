// Package benchtest has what the tests of all programs that measure need: it runs such a program for a short
// time, and checks what the program leaves behind.
package benchtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"berth/bench/harness"
	"berth/internal/devstack"
)

// Program is the function that runs a program with its arguments.
type Program func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// Main runs the tests of a program, or the program itself if a test has started this process as the program.
func Main(m *testing.M, main func()) {
	if os.Getenv(harness.MainVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Run runs the program with the arguments, with berth's programs and with a folder for temporary files. It
// returns the path of the JSON file of the results, and what the program has printed. The test fails if the
// program fails, or if it leaves a temporary file.
func Run(t *testing.T, run Program, args ...string) (results, printed string) {
	t.Helper()
	programs, err := devstack.Programs(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := devstack.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	results = filepath.Join(t.TempDir(), "results.json")
	var stdout, progress bytes.Buffer
	args = slices.Concat(args, []string{"-dir", dir, "-worker", filepath.Join(programs, "worker"), "-out", results})
	if err := run(t.Context(), args, &stdout, &progress); err != nil {
		t.Fatalf("a short run: got error %v, want none; output:\n%s", err, &progress)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("folder of temporary files after the run: got %v, error %v; want no files", left, err)
	}
	return results, stdout.String()
}

// CheckUsage checks that the program refuses each of the command lines.
func CheckUsage(t *testing.T, run Program, lines ...[]string) {
	t.Helper()
	for _, args := range lines {
		t.Run(fmt.Sprint(args), func(t *testing.T) {
			t.Parallel()
			if err := run(t.Context(), args, io.Discard, io.Discard); !errors.Is(err, harness.ErrUsage) {
				t.Errorf("invalid command line: got error %v, want harness.ErrUsage", err)
			}
		})
	}
}

// Results is the path in the repository of the results that the documentation shows.
const Results = "bench/testdata/results.json"

// Read reads the results that a program has written under its key of a JSON file.
func Read[T any](t *testing.T, file, section string) T {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var sections map[string]json.RawMessage
	if err := json.Unmarshal(raw, &sections); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var results T
	if err := json.Unmarshal(sections[section], &results); err != nil {
		t.Fatalf("%s, key %s: %v", file, section, err)
	}
	return results
}
