package interop

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const libraries = "github.com/gophercloud/gophercloud/v2/openstack/"

// gophercloudTrials lists, for each API, test files and packages of gophercloud. The test files must use
// every exported function of the listed packages, except the functions whose name begins with an entry in
// `except`.
var gophercloudTrials = []struct {
	files    []string
	packages []string
	least    int      // minimum number of functions that must be found
	except   []string // prefixes of functions that the test need not use
}{
	{[]string{"gophercloud_placement_test.go"}, []string{libraries + "placement/..."}, 50, nil},
	{
		[]string{
			"../api/neutron/gophercloud_test.go",
			"../api/neutron/gophercloud_wide_test.go",
			"../api/neutron/gophercloud_group_test.go",
		},
		networkingPackages(),
		90,
		[]string{
			"agents.ListBGP",
			"agents.ScheduleBGP",
			"agents.RemoveBGP",
			"agents.ListDRAgent",
			"agents.ExtractBGP", // berth has no routing API
			"agents.ListL3",
			"agents.ScheduleL3",
			"agents.RemoveL3",
			".ExtractRouters",
			"provider.UpdateOptsExt", // provider attributes of a network cannot change
			"ports.AddValueSpecs",
			"ports.ExtractPortsInto",
			"networks.ExtractNetworksInto", // these functions send no requests
			"extensions.ExtensionURL",
			"extensions.ListExtensionURL",
			".UnmarshalJSON",
			".NextPageURL",
			".ResourceKey",
		},
	}, // used by the library itself
}

func networkingPackages() (all []string) {
	for _, p := range []string{"networks", "subnets", "ports", "apiversions", "extensions", "extensions/agents", "extensions/attributestags", "extensions/external",
		"extensions/extradhcpopts", "extensions/mtu", "extensions/networkipavailabilities", "extensions/portsbinding", "extensions/portsecurity", "extensions/provider", "extensions/trunks",
		"extensions/trunk_details", "extensions/quotas", "extensions/security/groups", "extensions/security/rules"} {
		all = append(all, libraries+"networking/v2/"+p)
	}
	return all
}

func TestGophercloud_EveryFunctionIsTested(t *testing.T) {
	t.Parallel()
	for _, trial := range gophercloudTrials {
		// the used functions and types as package.Name, and the used methods as .Name
		used := map[string]bool{}
		for _, name := range trial.files {
			useOf(t, name, used)
		}
		found := 0
		for _, f := range functionsOf(t, trial.packages...) {
			if found++; !used[f] &&
				!slices.ContainsFunc(trial.except, func(e string) bool { return strings.HasPrefix(f, e) }) {
				t.Errorf(
					"the test files do not use gophercloud's function %s, want every exported function used",
					f,
				)
			}
		}
		if found < trial.least {
			t.Errorf("found only %d exported functions in gophercloud's packages %s, want more",
				found, trial.packages)
		}
	}
}

func useOf(t *testing.T, name string, used map[string]bool) {
	t.Helper()
	trial, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
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
}

// functionsOf lists what the packages export: functions as package.Function, methods of results as .Method,
// and option types as package.Type.
func functionsOf(t *testing.T, patterns ...string) (names []string) {
	t.Helper()
	files, err := exec.CommandContext(t.Context(), "go", append([]string{"list", "-f", `{{if ne .Name "testing"}}{{range .GoFiles}}{{$.Dir}}/{{.}} {{end}}{{end}}`}, patterns...)...).
		Output()
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
