package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"berth/internal/devstack"
)

// python is the path of a Python interpreter with the packages of a file in tools.
type python string

// findPython returns the interpreter with the packages of tools/NAME.txt.
func findPython(ctx context.Context, name string) (python, error) {
	cmd := exec.Command("tools/venv.sh", name)
	cmd.Stderr = os.Stderr
	var path bytes.Buffer
	cmd.Stdout = &path
	err := devstack.Run(ctx, cmd)
	return python(strings.TrimSpace(path.String())), err
}

// runProgram runs a program of a Python package. The scripts in the folder bin cannot run, because
// tools/venv.sh has moved the folder.
const runProgram = `
import sys
from importlib.metadata import entry_points
sys.argv = sys.argv[1:]
program, = entry_points(group="console_scripts", name=sys.argv[0])
sys.exit(program.load()())
`

// command returns the command that runs a program of a Python package.
func (p python) command(program string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(
		string(p),
		append([]string{"-W", "ignore", "-c", runProgram, program}, arguments...)...)
	cmd.Env = append(os.Environ(), "PYTHONWARNINGS=ignore")
	return cmd
}

// output runs a command and returns what it prints to stdout. The error of a failed command contains what it
// prints to stderr.
func output(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := devstack.Run(ctx, cmd); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args[len(cmd.Args)-1:], " "), err, &stderr)
	}
	return stdout.Bytes(), nil
}
