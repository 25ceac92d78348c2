package internal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	// maxColumns is the width of a page of code, where a tab counts four columns. Comments keep within it.
	maxColumns = 110
	// maxWidePercent is the maximum share of wider lines, in percent: a string, for example SQL or a message,
	// is not broken for the width.
	maxWidePercent = 3
	// maxDenseLiterals is the maximum share of literals that have four or more keys, and more keys than
	// lines, in percent.
	maxDenseLiterals = 10
)

// codeWidth counts what makes the lines of code files wide.
type codeWidth struct {
	lines, wide     int
	literals, dense int
	wideComments    []string
}

func TestLines_AtMost110ColumnsAndOneKeyALine(t *testing.T) {
	t.Parallel()
	var w codeWidth
	for _, file := range allGoFiles(t) {
		w.add(t, file)
	}
	for _, at := range w.wideComments {
		t.Errorf("comment at %s is wider than %d columns: wrap it", at, maxColumns)
	}
	if 100*w.wide > maxWidePercent*w.lines {
		t.Errorf("%d of %d lines are wider than %d columns, more than %d %%: wrap lines of code",
			w.wide, w.lines, maxColumns, maxWidePercent)
	}
	if 100*w.dense > maxDenseLiterals*w.literals {
		t.Errorf(
			"%d of %d literals with four or more keys have more keys than lines, more than %d %%: one key a line",
			w.dense, w.literals, maxDenseLiterals,
		)
	}
}

// allGoFiles lists the Go files of the module, tests included.
func allGoFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(name, ".") || name == "testdata" || exists(filepath.Join(path, "go.mod"))):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, ".go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("list the Go files: got %d files and error %v, want at least one file", len(files), err)
	}
	return files
}

func (w *codeWidth) add(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for number, line := range slices.All(strings.Split(string(text), "\n")) {
		columns := len([]rune(strings.ReplaceAll(line, "\t", "    ")))
		if strings.TrimSpace(line) == "" {
			continue
		}
		if w.lines++; columns <= maxColumns {
			continue
		}
		w.wide++
		if words := strings.Fields(line); words[0] == "//" && len(words) > 2 {
			w.wideComments = append(w.wideComments, token.Position{Filename: file, Line: number + 1}.String())
		}
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		if l, ok := n.(*ast.CompositeLit); ok {
			w.addLiteral(set, l)
		}
		return true
	})
}

func (w *codeWidth) addLiteral(set *token.FileSet, l *ast.CompositeLit) {
	lines := map[int]bool{}
	for _, e := range l.Elts {
		if _, keyed := e.(*ast.KeyValueExpr); !keyed {
			return
		}
		lines[set.Position(e.Pos()).Line] = true
	}
	if len(l.Elts) < 4 {
		return
	}
	if w.literals++; len(lines) < len(l.Elts) {
		w.dense++
	}
}
