package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"berth/starter/cli"
)

// composeEnvironment is the file from which Docker Compose reads its variables in the current folder.
const composeEnvironment = ".env"

// checkSecretFiles warns if a file with secrets can be read by every user of the machine: the files that the
// settings name, and Compose's .env in the current folder.
func checkSecretFiles(_ context.Context, s *cli.Session) (string, error) {
	var protected int
	var open []string
	for _, path := range append(s.Env.SecretFiles(), composeEnvironment) {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && path == composeEnvironment:
		case err != nil:
			return "", err
		case info.Mode().Perm()&0o007 != 0:
			open = append(open, path)
		default:
			protected++
		}
	}
	switch {
	case len(open) > 0:
		return "", fmt.Errorf(
			"%w: every user of this machine can use the secrets in %[2]s; run chmod 600 %[2]s",
			errWarning,
			strings.Join(open, " "),
		)
	case protected == 0:
		return "", fmt.Errorf("%w: no file with secrets", errNotConfigured)
	default:
		return fmt.Sprintf(
			"%d files with secrets can be read only by their owners and groups",
			protected,
		), nil
	}
}
