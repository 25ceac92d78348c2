package internal

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"
)

// Limits for the length of production code. The limits are so small that a reader can remember a package and see a function on one screen.
const (
	maxPackageLines  = 5000
	maxFunctionLines = 60
)

func TestPackagesAndFunctionsStaySmall(t *testing.T) {
	t.Parallel()
	for name := range packages(t) {
		lines := 0
		for _, file := range goFiles(t, filepath.Join("..", name)) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines += bytes.Count(text, []byte("\n"))
			for _, f := range longFunctions(t, file) {
				t.Errorf("function %s is longer than %d lines: split the function", f, maxFunctionLines)
			}
		}
		if lines > maxPackageLines {
			t.Errorf("package %s has %d lines, more than %d: split the package by concern", name, lines, maxPackageLines)
		}
	}
}

// longFunctions returns the position and the name of each function of a file that is longer than maxFunctionLines.
func longFunctions(t *testing.T, file string) (long []string) {
	t.Helper()
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && set.Position(f.End()).Line-set.Position(f.Pos()).Line >= maxFunctionLines {
			long = append(long, set.Position(f.Pos()).String()+": "+f.Name.Name)
		}
	}
	return long
}
