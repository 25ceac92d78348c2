package devstack

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// PostgresBinaries returns the folder of the PostgreSQL server binaries. If PostgreSQL is not installed on
// the machine, PostgresBinaries downloads the binaries once into a cache.
func PostgresBinaries(ctx context.Context) (string, error) {
	var places []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(initdb); err == nil {
			places = append(places, filepath.Dir(real))
		}
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"} {
		found, _ := filepath.Glob(pattern)
		slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
		places = append(places, found...)
	}
	cache := postgresCache()
	places = append(places, filepath.Join(cache, "bin"))
	for _, dir := range places {
		if hasServer(dir) {
			return dir, nil
		}
	}
	return filepath.Join(cache, "bin"), fetchPostgres(ctx, cache)
}

func hasServer(dir string) bool {
	for _, name := range []string{"postgres", "initdb"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

// version returns the first number in a path. version serves to choose the newest of several installed
// versions.
func version(path string) int {
	digits := strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(digits[0])
	return n
}

// postgresCache is the folder of downloaded binaries. If this process runs as root, the folder is outside of
// root's home directory, because the unprivileged user cannot enter this directory.
func postgresCache() string {
	base, err := os.UserCacheDir()
	if os.Geteuid() == 0 {
		base = "/var/cache"
	} else if err != nil {
		base = os.TempDir()
	}
	return filepath.Join(base, "berth", "postgres")
}

// fetchPostgres downloads PostgreSQL's binaries with the library embedded-postgres. The library cannot run
// PostgreSQL as root, so berth uses only the binaries. A single rename moves all files into the cache,
// because another process may download them at the same time.
func fetchPostgres(_ context.Context, cache string) error {
	if err := os.MkdirAll(filepath.Dir(cache), 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(cache), "fetch-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	port, err := Port(0)
	if err != nil {
		return err
	}
	fetched := filepath.Join(scratch, "postgres")
	db := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		BinariesPath(fetched).
		CachePath(filepath.Join(scratch, "archive")).
		RuntimePath(filepath.Join(scratch, "run")).
		Port(uint32(port)).
		Logger(io.Discard))
	err = db.Start()
	if err == nil {
		err = db.Stop()
	}
	if hasServer(filepath.Join(fetched, "bin")) {
		err = os.Rename(fetched, cache)
	}
	if hasServer(filepath.Join(cache, "bin")) {
		return nil
	}
	return errors.Join(
		errors.New("no PostgreSQL server found, and the download failed: install the package postgresql"),
		err,
	)
}
