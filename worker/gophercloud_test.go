package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"strings"
	"testing"
)

func TestNothingOfGophercloudsPlacementIsLeftOut(t *testing.T) {
	t.Parallel()
	used := map[string]bool{} // package.Name, and .Name of methods
	trial, err := parser.ParseFile(token.NewFileSet(), "gophercloud_placement_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(trial, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			used["."+s.Sel.Name] = true
			if of, ok := s.X.(*ast.Ident); ok {
				used[of.Name+"."+s.Sel.Name] = true
			}
		}
		return true
	})
	found := 0
	for _, f := range functionsOf(t, "github.com/gophercloud/gophercloud/v2/openstack/placement/...") {
		if found++; !used[f] {
			t.Errorf("%s is not tried", f)
		}
	}
	if found < 50 {
		t.Errorf("found only %d functions", found)
	}
}

// functionsOf lists what is exported as package.Function, as .Method for methods of results, and as package.Type for options, whose
// methods the functions call.
func functionsOf(t *testing.T, pattern string) (names []string) {
	t.Helper()
	files, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{if ne .Name "testing"}}{{range .GoFiles}}{{$.Dir}}/{{.}} {{end}}{{end}}`, pattern).Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(files)) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.IsExported() && f.Name.Name != "IsEmpty" {
				names = append(names, nameOf(file.Name.Name, f))
			}
		}
	}
	return names
}

func nameOf(pkg string, f *ast.FuncDecl) string {
	if f.Recv == nil {
		return pkg + "." + f.Name.Name
	}
	if of, ok := f.Recv.List[0].Type.(*ast.Ident); ok && strings.HasPrefix(f.Name.Name, "To") {
		return pkg + "." + of.Name
	}
	return "." + f.Name.Name
}
