package internal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// Limits for the size of production code. They are so small that a reader can remember a package and see a
// function on one screen. They count statements and not lines, so that nobody has a reason to write long
// lines.
const (
	maxPackageStatements  = 2200
	maxFunctionStatements = 40
)

func TestPackagesAndFunctionsStaySmall(t *testing.T) {
	t.Parallel()
	for name := range packages(t) {
		statements := 0
		for _, file := range goFiles(t, filepath.Join("..", name)) {
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range tree.Decls {
				n := countStatements(d)
				statements += n
				if f, ok := d.(*ast.FuncDecl); ok && n > maxFunctionStatements {
					t.Errorf("function %s at %s has %d statements, more than %d: split the function",
						f.Name.Name, set.Position(f.Pos()), n, maxFunctionStatements)
				}
			}
		}
		if statements > maxPackageStatements {
			t.Errorf("package %s has %d statements, more than %d: split the package by concern",
				name, statements, maxPackageStatements)
		}
	}
}

// countStatements returns the number of statements in a node, without the braces and the cases that group
// them.
func countStatements(node ast.Node) (n int) {
	ast.Inspect(node, func(x ast.Node) bool {
		switch x.(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause, *ast.EmptyStmt:
		case ast.Stmt:
			n++
		}
		return true
	})
	return n
}
