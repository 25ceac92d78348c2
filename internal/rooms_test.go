// Package internal holds nothing but the test that keeps the rooms apart.
package internal

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// room is one package: what of ours it may import, what of others it must not, and why.
type room struct {
	may    []string // packages of ours, relative to the module; a final /... takes in everything below
	never  []string // packages of others, with everything below them
	always []string // exceptions from the rules below for packages that only some rooms import
	pure   bool     // no I/O and no clock: value in, value out
	why    string
}

// Some packages of others belong to few rooms, and every other room must do without them.
var reserved = map[string]string{
	"github.com/jackc/pgx/v5":             "SQL lives in store alone",
	"github.com/pressly/goose/v3":         "the schema is store's",
	"database/sql":                        "SQL lives in store alone",
	"go.temporal.io/sdk":                  "APIs, rules and rows do not know that there is a Temporal",
	"github.com/gophercloud/gophercloud":  "who calls is identity's to find out, and what the cloud is told, cloud's",
	"github.com/spf13/cobra":              "commands are starter's",
	"github.com/spf13/pflag":              "commands are starter's",
	"go.yaml.in/yaml/v3":                  "settings are config's, an operator's rules policy's; starter prints YAML",
	"github.com/fergusstrange":            "servers for development are devstack's",
	"github.com/prometheus/client_golang": "figures are counted where things happen for long",
	"github.com/rabbitmq/amqp091-go":      "only api/rpc/oslomsg speaks AMQP",
	"github.com/anishathalye/porcupine":   "histories are judged in tests",
}

var (
	temporal   = "go.temporal.io/sdk"
	pgx        = "github.com/jackc/pgx/v5"
	prometheus = "github.com/prometheus/client_golang"
	amqp       = "github.com/rabbitmq/amqp091-go"
	yaml       = "go.yaml.in/yaml/v3"
)

var rooms = map[string]room{
	"worker": {may: []string{"internal/server"}, why: "main alone: what it starts is a package that tests can start too"},
	"internal/server": {
		may:    []string{"activities", "workflows", "internal/..."},
		always: []string{temporal, prometheus},
		why:    "wires everything, so it may import everything; SQL still is store's",
	},
	"internal/server/servertest": {
		may: []string{"internal/server", "internal/config", "internal/contract", "internal/devstack", "internal/devstack/temporaltest",
			"internal/store/storetest", "internal/odl/odltest", "internal/notify/notifytest"},
		always: []string{temporal, pgx},
		why:    "starts the server for tests, within the test's process or as a process of its own, beside servers of every kind",
	},
	"internal/interop": {why: "holds tests alone: stock OpenStack clients, Neutron's own agents, and the documents' commands"},
	"internal/torture": {why: "holds tests alone: killed processes, faults of other servers, and hostile input"},
	"starter": {
		may: []string{"starter/cli", "starter/resource", "starter/diagnosis", "starter/schema", "starter/demo"},
		why: "main alone: it joins the command tables of the other packages",
	},
	"starter/cli": {
		may:    []string{"internal/config"},
		always: []string{temporal, yaml, "github.com/spf13/cobra", "github.com/spf13/pflag"},
		why:    "the core of the command line knows no single command and no single resource, so that a new command changes nothing here",
	},
	"starter/resource": {
		may:    []string{"internal/contract", "starter/cli"},
		always: []string{temporal, "github.com/spf13/pflag"},
		why:    "a client of the API and of Temporal like any other client",
	},
	"starter/diagnosis": {
		may:    []string{"internal/contract", "internal/store/db", "starter/cli", "starter/resource"},
		always: []string{temporal, "github.com/spf13/pflag"},
		why:    "a client like any other; store only to compare the migrations",
	},
	"starter/schema": {
		may:    []string{"internal/store/db", "starter/cli"},
		always: []string{"github.com/spf13/pflag"},
		why:    "store only to migrate the schema",
	},
	"starter/demo": {
		may:    []string{"internal/contract", "starter/cli", "starter/resource", "starter/diagnosis"},
		always: []string{"github.com/spf13/pflag"},
		why:    "runs the commands of the other packages and checks their results; it has no other way to the services",
	},
	"bench": {
		may: []string{"internal/contract", "internal/devstack", "internal/store", "internal/store/db", "internal/store/journalstore", "internal/odl/odltest", "internal/notify/notifytest",
			"internal/api/placement", "internal/api/neutron", "internal/identity", "internal/identity/policy", "internal/journal", "internal/network"},
		always: []string{temporal, pgx, amqp},
		why: "measures the shipped worker from outside as a client and as an agent, and reads the rows; store to migrate, and to measure the " +
			"store alone with the types of its parameters; an API in the same process as the driver that is its baseline",
	},
	"workflows": {
		may:    []string{"activities", "internal/contract", "internal/lease", "internal/journal", "internal/network"},
		never:  []string{"net/http", "math/rand", "crypto/rand", "os", "github.com/google/uuid", "go.temporal.io/sdk/client"},
		always: []string{temporal},
		pure:   true,
		why:    "replayed from history: what differs between two runs of the same code breaks it, and the world is reached through activities",
	},
	"activities": {
		may:    []string{"internal/contract", "internal/coalesce", "internal/store", "internal/store/...", "internal/odl", "internal/notify", "internal/cloud", "internal/lease", "internal/journal", "internal/network", "internal/inventory"},
		never:  []string{"net/http", "go.temporal.io/sdk/client", "go.temporal.io/sdk/workflow"},
		always: []string{temporal},
		why:    "touches the world through the rooms that own it, and starts no workflow",
	},
	"internal/contract": {
		never: []string{"net/http"},
		pure:  true,
		why:   "everybody imports it, so it imports nobody, not even an SDK",
	},
	"internal/inventory": {pure: true, why: "a noun: rules that any room can ask and a test can tabulate"},
	"internal/network":   {pure: true, why: "a noun; the nouns meet in store and in workflows, not in each other"},
	"internal/network/attribute": {
		may:  []string{"internal/network"},
		pure: true,
		why:  "the table from which every view of a port is made; it reads values and writes values, and whoever sends them imports it",
	},
	"internal/lease":   {pure: true, why: "a noun; what is due is asked with the instant as an argument"},
	"internal/journal": {pure: true, why: "a noun; it says which request to send and sends none"},
	"internal/store": {
		may: []string{"internal/store/db", "internal/store/outbox", "internal/store/journalstore", "internal/store/inventorystore",
			"internal/store/networkstore", "internal/store/leasestore", "internal/store/mirrorstore"},
		why: "opens the stores on one database and reads no row itself",
	},
	"internal/store/db": {
		never:  []string{"net/http"},
		always: []string{pgx, "github.com/pressly/goose/v3", "database/sql"},
		why:    "pools, transactions and the schema; it owns no rows, so it knows no domain",
	},
	"internal/store/outbox":         stores("internal/contract", "internal/store/db"),
	"internal/store/journalstore":   stores("internal/contract", "internal/journal", "internal/store/db", "internal/store/outbox"),
	"internal/store/inventorystore": stores("internal/coalesce", "internal/inventory", "internal/store/db"),
	"internal/store/networkstore": stores("internal/contract", "internal/network", "internal/network/attribute", "internal/journal",
		"internal/store/db", "internal/store/outbox", "internal/store/journalstore"),
	"internal/store/leasestore": stores("internal/contract", "internal/lease", "internal/inventory", "internal/store/db",
		"internal/store/outbox", "internal/store/inventorystore"),
	"internal/store/mirrorstore": stores("internal/contract", "internal/journal", "internal/store/db", "internal/store/outbox",
		"internal/store/journalstore", "internal/store/networkstore"),
	"internal/store/storetest": {
		may:    []string{"internal/contract", "internal/inventory", "internal/lease", "internal/store/...", "internal/devstack"},
		always: []string{pgx},
		why:    "makes a database for each test",
	},
	"internal/relay": {
		may:    []string{"internal/contract", "internal/store/outbox"},
		never:  []string{"net/http"},
		always: []string{temporal, prometheus},
		why:    "delivers notes of every workflow type, so that a new type changes nothing here",
	},
	"internal/feedback": {
		may: []string{"internal/odl", "internal/store/networkstore", "internal/store/db", "internal/network"},
		why: "hears the controller and tells store; it knows no workflow, and how the controller speaks is odl's",
	},
	"internal/odl":               {why: "a client of one neighbour, of use to anybody; what an answer means is journal's"},
	"internal/odl/odltest":       {why: "a neighbour that behaves; it shares no code with the client that it tests"},
	"internal/notify":            {may: []string{"internal/coalesce"}, why: "sends events to Nova and webhooks; it knows no row"},
	"internal/notify/notifytest": {why: "a neighbour that behaves; it shares no code with the client that it tests"},
	"internal/coalesce":          {why: "combines concurrent calls; it knows nothing about the operations"},
	"internal/cloud": {
		may:    []string{"internal/coalesce", "internal/lease"},
		always: []string{"github.com/gophercloud/gophercloud"},
		why:    "what reservations are at Nova and Neutron: it is handed claims and knows no row",
	},
	"internal/identity": {
		always: []string{"github.com/gophercloud/gophercloud"},
		why:    "who calls; what a caller may do is the other rooms' to say",
	},
	"internal/identity/policy": {
		may:    []string{"internal/identity"},
		always: []string{yaml},
		why:    "rules and who they allow; which operations there are is the APIs' to say",
	},
	"internal/identity/keystonetest": {why: "a neighbour that behaves; it shares no code with the client that it tests"},
	"internal/config":                {always: []string{yaml}, why: "settings are read once, by main, and handed on as values"},
	"internal/devstack":              {may: []string{"internal/contract"}, always: []string{pgx, "github.com/fergusstrange"}, why: "servers; it knows of us only which search attributes there are"},
	"internal/devstack/temporaltest": {
		may:    []string{"internal/contract", "internal/devstack"},
		always: []string{temporal},
		why:    "makes a namespace for each test",
	},
	"internal/devstack/teststack": {may: []string{"internal/devstack"}, why: "one server of each kind for a run of tests"},
	"internal/api/osapi": {
		may: []string{"internal/identity", "internal/store/db"},
		why: "manners that all APIs share: it knows store's errors and no noun",
	},
	"internal/api/placement": api("internal/inventory", "inventorystore", "internal/identity/policy"),
	"internal/api/neutron":   api("internal/network", "networkstore", "internal/network/attribute"),
	"internal/api/blazar":    api("internal/lease", "leasestore"),
	"internal/api/agent":     api("internal/network", "networkstore"),
	"internal/api/rpc": {
		may:    []string{"internal/api/rpc/oslomsg", "internal/store/networkstore", "internal/store/db", "internal/network", "internal/network/attribute"},
		always: []string{prometheus},
		why:    "implements the RPC methods of agents: decodes, calls the store once, encodes; the wire protocol is oslomsg's, and Temporal is behind the rows",
	},
	"internal/api/rpc/oslomsg": {
		always: []string{prometheus, amqp},
		why:    "implements oslo.messaging's RPC over RabbitMQ for any methods; it imports none of our packages, so that it knows no ports",
	},
	"internal/api/journal":  api("internal/journal", "journalstore", "internal/store/mirrorstore"),
	"internal/api/operator": api("internal/inventory", "inventorystore"),
}

// stores is the package of one owner of tables: its own rules, and the stores below it.
func stores(may ...string) room {
	return room{
		may:    may,
		never:  []string{"net/http"},
		always: []string{pgx},
		why:    "a transaction waits for nothing outside the database, and imports follow the data: a store reads its own tables and those of the stores below it",
	}
}

// api is the package of one API: its own rules and its own store, and no other API. It reads errors and lists of db.
func api(rules, store string, more ...string) room {
	return room{
		may: append([]string{"internal/api/osapi", "internal/identity", rules, "internal/store/" + store, "internal/store/db"}, more...),
		why: "decodes, calls its store once, encodes; a wire format lives in one API only, and Temporal and the controller are behind the rows",
	}
}

func TestRoomsImportOnlyWhatTheyMay(t *testing.T) {
	t.Parallel()
	found := packages(t)
	for name, imports := range found {
		r, ok := rooms[name]
		if !ok {
			t.Errorf("%s is not in the table of rooms: say what it may import, and why", name)
			continue
		}
		for _, imported := range imports {
			if why := r.refuses(imported); why != "" {
				t.Errorf("%s must not import %s: %s", name, imported, why)
			}
		}
	}
}

// TestReservedPackagesAreNamedInFull guards the table itself: a rule about a package that nobody imports any
// more, or that is misspelt, protects nothing.
func TestReservedPackagesAreNamedInFull(t *testing.T) {
	t.Parallel()
	modules, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for name := range reserved {
		if strings.Contains(name, ".") && !strings.Contains(string(modules), name) {
			t.Errorf("%s is reserved but no module of ours", name)
		}
	}
	for name, r := range rooms {
		if r.why == "" {
			t.Errorf("%s has no reason", name)
		}
	}
}

func TestPureRoomsHaveNoClockAndNoGoroutines(t *testing.T) {
	t.Parallel()
	for name, r := range rooms {
		if !r.pure {
			continue
		}
		for _, file := range sources(t, name) {
			for _, trouble := range impurities(t, file) {
				t.Error(trouble)
			}
		}
	}
}

// refuses says why the room must not import the package, or nothing if it may.
func (r room) refuses(imported string) string {
	if ours, ok := strings.CutPrefix(imported, "berth/"); ok {
		for _, may := range r.may {
			if below, whole := strings.CutSuffix(may, "/..."); ours == may || whole && under(ours, below) {
				return ""
			}
		}
		return r.why
	}
	for _, never := range r.never {
		if under(imported, never) {
			return r.why
		}
	}
	for _, always := range r.always {
		if under(imported, always) {
			return ""
		}
	}
	for name, why := range reserved {
		if under(imported, name) {
			return why
		}
	}
	if r.pure && slices.Contains([]string{"os", "io/fs", "log", "log/slog", "syscall", "context", "sync"}, imported) {
		return r.why
	}
	return ""
}

func under(imported, parent string) bool {
	return imported == parent || strings.HasPrefix(imported, parent+"/")
}

// impurities are the clocks, goroutines and calls of the network in a file of a pure room. Names of HTTP verbs
// and statuses are values like any other.
func impurities(t *testing.T, file string) []string {
	t.Helper()
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	report := func(n ast.Node, what string) {
		found = append(found, set.Position(n.Pos()).String()+": "+what)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n, "a goroutine in a pure room")
		case *ast.SelectStmt:
			report(n, "a select in a pure room")
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			if !ok || pkg.Obj != nil { // a variable of that name
				break
			}
			clock := pkg.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}, n.Sel.Name)
			network := pkg.Name == "http" && !strings.HasPrefix(n.Sel.Name, "Method") && !strings.HasPrefix(n.Sel.Name, "Status")
			network = network || pkg.Name == "net" && slices.ContainsFunc([]string{"Dial", "Listen", "Lookup", "Resolve", "Interface"}, func(p string) bool { return strings.HasPrefix(n.Sel.Name, p) })
			if clock || network {
				report(n, pkg.Name+"."+n.Sel.Name+" in a pure room")
			}
		}
		return true
	})
	return found
}

// packages finds every package of the module with its direct imports, tests aside.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir("..", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || dir == ".." {
			return err
		}
		if name := d.Name(); strings.HasPrefix(name, ".") || name == "testdata" || exists(filepath.Join(dir, "go.mod")) {
			return filepath.SkipDir
		}
		imports := map[string]bool{}
		files := goFiles(t, dir)
		for _, file := range files {
			for _, imported := range importsOf(t, file) {
				imports[imported] = true
			}
		}
		if len(files) > 0 {
			var list []string
			for imported := range imports {
				list = append(list, imported)
			}
			slices.Sort(list)
			found[path.Clean(filepath.ToSlash(strings.TrimPrefix(dir, "../")))] = list
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("found only %d packages", len(found))
	}
	return found
}

func sources(t *testing.T, name string) []string {
	t.Helper()
	if !exists(filepath.Join("..", name)) {
		return nil
	}
	return goFiles(t, filepath.Join("..", name))
}

// goFiles are the files of a folder that are built, tests aside.
func goFiles(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		if built, err := build.Default.MatchFile(dir, e.Name()); err != nil || !built {
			continue
		}
		files = append(files, filepath.Join(dir, e.Name()))
	}
	return files
}

func importsOf(t *testing.T, file string) []string {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var imports []string
	for _, s := range tree.Imports {
		imported, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		imports = append(imports, imported)
	}
	return imports
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
