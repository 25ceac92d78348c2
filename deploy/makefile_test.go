package deploy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMakefile_SoakSelectsExistingTests checks the target soak of the Makefile: each alternative of its -run pattern, and each of its
// packages, must match a test.
func TestMakefile_SoakSelectsExistingTests(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(`(?m)^races = (.+)$`).FindSubmatch(raw)
	packages := regexp.MustCompile(`-run '\$\(races\)' (.+)`).FindSubmatch(raw)
	if pattern == nil || packages == nil {
		t.Fatal("the Makefile has no variable races, or no target that uses it")
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
			t.Errorf("the target soak of the Makefile: no test matches its pattern or package %s", part)
		}
	}
}

// testNames returns the names of the test functions in a folder. If the folder ends in "...", testNames includes the folders below.
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
