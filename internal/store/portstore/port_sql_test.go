package portstore_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/store/portstore"
)

var update = flag.Bool("update", false, "write the assembled queries into testdata")

// The queries of ports are assembled from pieces. The golden files contain the text that PostgreSQL gets, for
// readers, reviews and EXPLAIN.
func TestPortSQL_EqualsGoldenFiles(t *testing.T) {
	t.Parallel()
	for file, sql := range map[string]string{
		"port.sql":        portstore.PortSQL,
		"small_port.sql":  portstore.SmallPortSQL,
		"locked_port.sql": portstore.LockedPortSQL,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			path, got := filepath.Join("testdata", file), sql+";\n"
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("run go test ./internal/store/portstore -run PortSQL -update (-golden file +assembled):\n%s", d)
			}
		})
	}
}
