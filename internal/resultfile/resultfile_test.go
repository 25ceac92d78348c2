package resultfile_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/resultfile"
)

func TestWriteSection_KeepsTheOtherSections(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results.json")
	for _, s := range []struct {
		key   string
		value int
	}{{"costs", 1}, {"failover", 2}, {"costs", 3}} {
		if err := resultfile.WriteSection(file, s.key, s.value); err != nil {
			t.Fatal(err)
		}
	}

	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]int
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]int{"costs": 3, "failover": 2}, got); d != "" {
		t.Errorf("sections of the file (-want +got):\n%s", d)
	}
}

func TestWriteSection_RefusesAFileThatItCannotKeep(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results.json")
	const content = `["not an object"]`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}

	err := resultfile.WriteSection(file, "costs", 1)

	if raw, _ := os.ReadFile(file); err == nil || string(raw) != content {
		t.Errorf("a section in a file without an object: got error %v and content %s; want an error and %s", err, raw, content)
	}
}
