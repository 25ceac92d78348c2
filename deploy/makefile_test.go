package deploy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMakefile_RacesSelectsExistingTests checks the target races of the Makefile: each alternative of the
// target's -run pattern must match a test, and each package of the target must contain a matching test.
func TestMakefile_RacesSelectsExistingTests(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(`(?m)^races = (.+)$`).FindSubmatch(raw)
	packages := regexp.MustCompile(`-run '\$\(races\)' (.+)`).FindSubmatch(raw)
	if pattern == nil || packages == nil {
		t.Fatal(
			"the Makefile: want a variable `races` and a target that uses this variable; at least one is missing",
		)
	}
	matched := map[string]bool{}
	for dir := range strings.FieldsSeq(string(packages[1])) {
		names := testNames(t, filepath.Join("..", dir))
		for alternative := range strings.SplitSeq(string(pattern[1]), "|") {
			for _, name := range names {
				if strings.Contains(name, alternative) {
					matched[dir], matched[alternative] = true, true
				}
			}
		}
	}
	for part := range strings.FieldsFuncSeq(string(pattern[1])+" "+string(packages[1]), func(r rune) bool { return r == '|' || r == ' ' }) {
		if !matched[part] {
			t.Errorf(
				"the target races of the Makefile: want a test that matches the pattern or package %s, got none",
				part,
			)
		}
	}
}

// testNames returns the names of the test functions in a folder. If the parameter `dir` ends in "...",
// testNames also returns the test functions in all folders below this folder.
func testNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	root, recursive := strings.CutSuffix(dir, "...")
	err := filepath.WalkDir(filepath.Clean(root), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != filepath.Clean(root) && !recursive {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		raw, err := os.ReadFile(path)
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(raw, -1) {
			names = append(names, string(match[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
