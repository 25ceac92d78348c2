package devstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// ProgramsVariable is the environment variable with the folder of the built programs worker and starter.
const ProgramsVariable = "BERTH_TEST_PROGRAMS"

// Programs returns the folder of the programs worker and starter. The folder is the value of
// ProgramsVariable. If the variable is not set, Programs builds both programs in dir. Programs builds them
// without the race detector, because the detector's reports are lost when a test kills a process.
func Programs(ctx context.Context, dir string) (string, error) {
	if built := os.Getenv(ProgramsVariable); built != "" {
		return built, nil
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", dir+"/", "berth/worker", "berth/starter").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build worker and starter: %w: %s", err, out)
	}
	return dir, nil
}
