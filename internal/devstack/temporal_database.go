package devstack

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
)

// minorVersion finds the minor version of the dev server in the CLI's output, for example 1.32 in "(Server
// 1.32.1, UI 2.54.1)".
var minorVersion = regexp.MustCompile(`\(Server (\d+\.\d+)`)

// databasePath returns the path of the dev server's database. The name of the database contains the server's
// minor version. The dev server creates the tables of a new file, but does not add the tables of a new
// version to an existing file, so requests that need these tables would fail. A new version starts with an
// empty file, and berth starts its workflows again from the rows in PostgreSQL.
func databasePath(ctx context.Context, o TemporalOptions) (string, error) {
	out, err := exec.CommandContext(ctx, o.CLI, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", o.CLI, err)
	}
	version := minorVersion.FindSubmatch(out)
	if version == nil {
		return "", fmt.Errorf("%s --version prints %q, which does not name the version of the server",
			o.CLI, out)
	}
	return filepath.Join(o.Dir, "temporal-"+string(version[1])+".db"), nil
}
