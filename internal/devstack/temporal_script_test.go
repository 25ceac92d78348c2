package devstack_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTemporalScript_ResolvesTheLinkThatMakeSets checks that make does not link bin/temporal to itself if bin
// is in PATH.
func TestTemporalScript_ResolvesTheLinkThatMakeSets(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(bin, "temporal")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "../../tools/temporal.sh")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "BERTH_TEMPORAL_CLI=")
	out, err := cmd.Output()
	if got := strings.TrimSpace(string(out)); err != nil || got != program {
		t.Errorf("tools/temporal.sh with a link in PATH: got %q, error %v; want the program %s",
			got, err, program)
	}
}
