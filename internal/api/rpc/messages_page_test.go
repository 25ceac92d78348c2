package rpc

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/docpage"
)

func TestMessagesPage_NamesEachRPCMethodWithItsVersion(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for _, e := range (&handlers{}).endpoints() {
		for name := range e.Methods {
			want[name] = fmt.Sprintf("1.%d", e.Minor)
		}
	}
	got := map[string]string{}
	for _, row := range docpage.Rows(t, docpage.Messages, "### RPC methods") {
		got[strings.Join(docpage.Names(row[0]), " ")] = row[2]
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the RPC methods in %s differ from the handlers (-code +page):\n%s", docpage.Messages, d)
	}
	topics := docpage.Table(t, docpage.Messages, "## RPC calls of agents")
	for _, topic := range []string{topicPlugin, topicReports, topicL3} {
		if _, ok := topics[topic]; !ok || len(topics) != 3 {
			t.Errorf("the topics in %s: got %v, want %s and two others", docpage.Messages, topics, topic)
		}
	}
}

func TestMessagesPage_NamesTheArgumentsOfEachRPCMethod(t *testing.T) {
	t.Parallel()
	got := docpage.Table(t, docpage.Messages, "### RPC methods")
	want := map[string][]string{}
	for method, argsType := range methodArguments(t) {
		want[method] = argsType
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the arguments of the RPC methods in %s differ from the handlers (-code +page):\n%s",
			docpage.Messages, d)
	}
}

// methodArguments returns the names of the arguments of each RPC method, from the source of the handlers.
func methodArguments(t *testing.T) map[string][]string {
	t.Helper()
	types, argumentOf, handlerOf := map[string][]string{}, map[string]string{}, map[string]string{}
	for _, file := range sourceFiles(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					types[n.Name.Name] = jsonNames(s)
				}
			case *ast.FuncDecl:
				if params := n.Type.Params.List; n.Recv != nil && len(params) == 2 {
					if name, ok := params[1].Type.(*ast.Ident); ok {
						argumentOf[n.Name.Name] = name.Name
					}
				}
			case *ast.KeyValueExpr:
				if name, ok := literal(n.Key); ok {
					if call, ok := n.Value.(*ast.CallExpr); ok {
						handlerOf[name] = handlerName(call)
					}
				}
			}
			return true
		})
	}
	all := map[string][]string{}
	for _, e := range (&handlers{}).endpoints() {
		for method := range e.Methods {
			all[method] = types[argumentOf[handlerOf[method]]]
			if all[method] == nil {
				all[method] = []string{} // the handler is a function without arguments
			}
		}
	}
	return all
}

// handlerName returns the name of the method m in a call WithArgs(h.m); empty: the handler has no arguments.
func handlerName(call *ast.CallExpr) string {
	if len(call.Args) != 1 {
		return ""
	}
	if s, ok := call.Args[0].(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}

func jsonNames(s *ast.StructType) []string {
	names := []string{}
	for _, f := range s.Fields.List {
		if f.Tag != nil {
			tag, _ := literal(f.Tag)
			name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

// literal returns the value of a string literal.
func literal(e ast.Expr) (string, bool) {
	b, ok := e.(*ast.BasicLit)
	if !ok || b.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(b.Value)
	return text, err == nil
}

func sourceFiles(t *testing.T) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// The builder of messages names each method and topic in a call of addDHCP, addL2 or add.
func TestMessagesPage_NamesEachNotificationForAgents(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for _, file := range sourceFiles(t) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					for method, to := range sentMethods(f, call) {
						want[method] = to
					}
				}
				return true
			})
		}
	}
	got := map[string]string{}
	for _, row := range docpage.Rows(t, docpage.Messages, "## Notifications for agents") {
		got[docpage.Names(row[0])[0]] = docpage.Names(row[1])[0]
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the notifications in %s differ from the builder of messages (-code +page):\n%s",
			docpage.Messages, d)
	}
}

// sentMethods returns the methods that a call in the function f sends to agents, each with its topic.
func sentMethods(f *ast.FuncDecl, call *ast.CallExpr) map[string]string {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	switch s.Sel.Name {
	case "addDHCP":
		return textsTo(f, call.Args[1], topicDHCP)
	case "addL2":
		subject, _ := literal(call.Args[0])
		return textsTo(f, call.Args[1], subject)
	case "addPush":
		return map[string]string{"push": "neutron-vo"}
	default:
		return nil
	}
}

// textsTo maps the texts that an expression can have to a topic: a literal, or the literals that the function
// assigns to a variable.
func textsTo(f *ast.FuncDecl, e ast.Expr, topic string) map[string]string {
	all := map[string]string{}
	if text, ok := literal(e); ok {
		all[text] = topic
	}
	name, ok := e.(*ast.Ident)
	if !ok {
		return all
	}
	ast.Inspect(f, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, left := range a.Lhs {
			if v, ok := left.(*ast.Ident); ok && v.Name == name.Name && i < len(a.Rhs) {
				if text, ok := literal(a.Rhs[i]); ok {
					all[text] = topic
				}
			}
		}
		return true
	})
	return all
}
