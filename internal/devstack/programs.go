package devstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// ProgramsVariable names a folder with berth's worker and starter, as make builds them.
const ProgramsVariable = "BERTH_TEST_PROGRAMS"

// Programs returns the folder of berth's worker and starter: the one that ProgramsVariable names, else dir, after
// building them there. They are without the race detector: nobody hears what it finds in a process that a test kills.
func Programs(ctx context.Context, dir string) (string, error) {
	if built := os.Getenv(ProgramsVariable); built != "" {
		return built, nil
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", dir+"/", "berth/worker", "berth/starter").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build worker and starter: %w: %s", err, out)
	}
	return dir, nil
}
