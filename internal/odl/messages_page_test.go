package odl_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/docpage"
)

var restconfPath = regexp.MustCompile(`"(/restconf/[^"]+)"`)

func TestMessagesPage_NamesThePathsOfTheController(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range restconfPath.FindAllSubmatch(source, -1) {
			paths[string(m[1])] = true
		}
	}
	got := slices.Sorted(maps.Keys(docpage.Table(t, docpage.Messages, "### State of the controller")))
	if d := cmp.Diff(slices.Sorted(maps.Keys(paths)), got); d != "" {
		t.Errorf("the paths of the controller in %s differ from package odl (-code +page):\n%s",
			docpage.Messages, d)
	}
}
