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

// postgresBinaries finds the folder of PostgreSQL's server binaries: on the machine, else fetched once into
// the user's cache.
func postgresBinaries(ctx context.Context) (string, error) {
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

// version is the first number in a path, for choosing the newest of several.
func version(path string) int {
	digits := strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(digits[0])
	return n
}

// postgresCache is where fetched binaries are kept. Root's own cache is closed to the account that root lends.
func postgresCache() string {
	base, err := os.UserCacheDir()
	if os.Geteuid() == 0 {
		base = "/var/cache"
	} else if err != nil {
		base = os.TempDir()
	}
	return filepath.Join(base, "berth", "postgres")
}

// fetchPostgres lets the embedded-postgres library bring the binaries. The library would also run them, which
// it cannot do as root; only the binaries are wanted here. They appear in the cache all at once, since another
// process may be doing the same.
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
	db := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().BinariesPath(fetched).
		CachePath(filepath.Join(scratch, "archive")).RuntimePath(filepath.Join(scratch, "run")).Port(uint32(port)).Logger(io.Discard))
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
	return errors.Join(errors.New("no PostgreSQL server on this machine, and none could be fetched: install the package postgresql"), err)
}
