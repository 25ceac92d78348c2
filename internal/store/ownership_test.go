package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tables lists the tables that each package owns. Only the package that owns a table may write the table.
var tables = map[string][]string{
	"db":     {"schema_support", "authentication"},
	"outbox": {"note", "temporal_namespace", "projection", "maintenance"},
	"journalstore": {
		"journal_entry",
		"journal_dep",
		"journal_audit",
		"journal_pause",
		"journal_pause_audit",
		"mirror_breaker",
		"mirror_object",
	},
	"inventorystore": {
		"provider",
		"inventory",
		"trait",
		"provider_trait",
		"resource_class",
		"provider_aggregate",
		"consumer",
		"allocation",
		"generation_change",
		"generation_conflict",
	},
	"networkstore": {
		"network",
		"subnet",
		"agent",
		"dhcp_binding",
		"security_group",
		"security_group_rule",
		"quota",
		"tunnel_end",
		"router_mac",
	},
	"portstore":         {"port", "port_address", "port_binding", "block", "trunk", "subport"},
	"agentstore":        {"agent_credential", "agent_virtual_host"},
	"auditstore":        {"audit_pending", "audit_record", "audit_chain"},
	"notificationstore": {"agent_notification", "notification_replay", "nova_event", "provisioning_notification"},
	"leasestore": {
		"lease",
		"reservation",
		"event",
		"host",
		"host_property",
		"host_capability",
		"host_allocation",
		"host_pooling",
		"floatingip",
		"floatingip_allocation",
		"reservable_resource",
		"reservable_resource_property",
		"resource_allocation",
		"lease_combination",
		"lease_notification",
		"reservation_failure",
		"reservation_former_host",
		"reservation_leftover",
	},
	"mirrorstore": {"mirror_run", "mirror_finding", "mirror_run_entry"},
}

// allowedReads lists, for each package, the tables of other packages that the package may read in its own
// SQL, and the reason for each table.
var allowedReads = map[string]map[string]string{
	"networkstore": {
		"port":         "an object does not change while a port uses it, an agent names the number of its ports, a heartbeat finds the failed bindings of its host, and a host reads the objects that its ports need",
		"port_address": "the gateway of a subnet does not change while a router port has this address",
		"port_binding": "a host reads the objects that the ports with an inactive binding to it need",
		"block":        "an agent names the number of the ports that wait for it",
	},
	"portstore": {
		"network":        "a port has attributes of its network, and a project sees the ports on its networks",
		"subnet":         "a port waits for DHCP only if one of its subnets has DHCP; addresses are counted by subnet",
		"agent":          "one query returns a port and the agents that wire it or serve its network",
		"dhcp_binding":   "a port waits for the DHCP agents of its network",
		"security_group": "a transaction locks the groups that a port gets",
		"journal_entry":  "WiredPorts checks in the same statement that no change of the port is on its way to the controller",
		"nova_event":     "the workflow of a deleted port runs until Nova has the events of the port",
	},
	"leasestore": {
		"provider":       "a host is the resource provider of a compute node: one query returns hosts, their capacity and their use",
		"inventory":      "the capacity of a host is its provider's inventory",
		"resource_class": "inventories and allocations name their class by its number",
		"allocation":     "a host that instances use is not deleted, and its use limits new reservations",
		"consumer":       "the instances of a host are the consumers of its allocations",
		"trait":          "an instance reservation may require traits of its hosts",
		"provider_trait": "an instance reservation may require traits of its hosts",
		"network":        "a floating IP belongs to an external network",
		"subnet":         "a floating IP lies in a subnet of its network",
	},
	"metricstore": {
		"block":                     "metrics count the blocks by age",
		"agent":                     "metrics count the agents by state",
		"nova_event":                "metrics count the undelivered messages",
		"agent_notification":        "metrics count the undelivered messages",
		"lease_notification":        "metrics count the undelivered messages",
		"provisioning_notification": "metrics count the undelivered messages",
	},
	"reportstore": {
		"block":                     "a report says for which agents ports and trunks wait",
		"agent":                     "a report names the agents that send no heartbeat, beside the objects that wait for them",
		"journal_pause":             "while the journal is paused, its entries and runs are not overdue",
		"mirror_run":                "a report names the runs that make no progress",
		"port":                      "a report names the ports that wait, and counts the ports that no agent can bind",
		"trunk":                     "a report names the trunks that wait",
		"journal_entry":             "a report counts the entries that wait, in the same statement as the ports and leases that wait",
		"journal_dep":               "an entry waits for the controller only if it waits for no earlier entry",
		"reservation_failure":       "a report says which calls for reservations fail",
		"reservation":               "a failed call belongs to a reservation, and the reservation to a lease",
		"lease":                     "a report names the leases that wait",
		"event":                     "a lease waits for a worker or another lease if its event is overdue",
		"host":                      "a report names the host of a lease that starts late",
		"host_allocation":           "a lease starts late if another lease still has its host",
		"nova_event":                "a report counts the events that Nova has not got",
		"agent_notification":        "a report counts the notifications that RabbitMQ has not got",
		"provisioning_notification": "a report counts the notifications that the webhook has not got",
		"lease_notification":        "a report counts the notifications that the webhook has not got",
		"note":                      "a report counts the notes that Temporal has not got",
	},
	"mirrorstore": {
		"journal_entry": "runs join their entries: progress, entries that still wait, and failed entries that no recovery has handled",
		"journal_dep":   "a run counts the entries that wait for a failed entry, directly or through other entries",
	},
}

// use is one use of a table in an SQL text: a read or a write.
type use struct {
	table string
	write bool
}

func (u use) String() string {
	if u.write {
		return "writes " + u.table
	}
	return "reads " + u.table
}

func TestOwnership_EveryTableHasOneOwner(t *testing.T) {
	schema, err := os.ReadFile("db/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	var existing, owned []string
	for _, m := range regexp.MustCompile(`(?mi)^create table (?:public\.)?(\w+)`).FindAllSubmatch(schema, -1) {
		existing = append(existing, string(m[1]))
	}
	for _, names := range tables {
		owned = append(owned, names...)
	}
	slices.Sort(existing)
	slices.Sort(owned)
	if !slices.Equal(slices.Compact(slices.Clone(owned)), owned) {
		t.Errorf("owned tables: got a table twice in %v, want one owner for each table", owned)
	}
	// the table of goose, the migration tool
	existing = slices.DeleteFunc(existing,
		func(table string) bool { return table == "goose_db_version" })
	if !slices.Equal(existing, owned) {
		t.Errorf("tables of the schema:\n%v\ntables with an owner:\n%v\nwant both lists to be equal",
			existing, owned)
	}
}

func TestOwnership_OnlyTheOwnerWritesATable(t *testing.T) {
	owners := map[string]string{}
	for owner, names := range tables {
		for _, table := range names {
			owners[table] = owner
		}
	}
	files, err := filepath.Glob("*/*.go")
	if err != nil || len(files) < 50 {
		t.Fatalf(
			"list the Go files of the store packages: got %d files, error %v; want at least 50 files",
			len(files),
			err,
		)
	}
	seen := map[string]map[string]bool{}
	for _, file := range files {
		pkg := filepath.Dir(file)
		if strings.HasSuffix(file, "_test.go") || pkg == "storetest" {
			continue
		}
		for _, s := range sqlTexts(t, file) {
			for _, u := range tableUses(s.text) {
				owner := owners[u.table]
				if owner == "" || owner == pkg {
					continue
				}
				if u.write || allowedReads[pkg][u.table] == "" {
					t.Errorf(
						"%s: package %s %s, a table of package %s: want no write, and no read that allowedReads does not list",
						s.position, pkg, u, owner,
					)
					continue
				}
				if seen[pkg] == nil {
					seen[pkg] = map[string]bool{}
				}
				seen[pkg][u.table] = true
			}
		}
	}
	for pkg, reads := range allowedReads {
		for table := range reads {
			if !seen[pkg][table] {
				t.Errorf(
					"package %s no longer reads table %s: want no exception for this table in allowedReads",
					pkg,
					table,
				)
			}
		}
	}
}

func TestOwnership_TableUsesAreFound(t *testing.T) {
	for _, tt := range []struct{ sql, want string }{
		{`select 1 from port p join network n on n.id = p.network_id where true`, "reads network, reads port"},
		{`select 1 from port, subnet s where x in (select id from agent)`, "reads agent, reads port, reads subnet"},
		{`select x from unnest($1::text[], $2) as o (a, b), trunk t where o.a, port = 1`, "reads trunk"},
		{`insert into note (workflow_id) select id, lease from reservation on conflict (workflow_id) do update set fresh = false`, "reads reservation, writes note"},
		{`update note n set due_at = now() from lease where n.id = lease.id`, "reads lease, writes note"},
		{`delete from note using event e where true`, "reads event, writes note"},
		{`select 1 from host for no key update of host skip locked`, "reads host"},
		{`lock table provider in exclusive mode`, "writes provider"},
		{`merge into quota using host h on true`, "reads host, writes quota"},
		{`truncate network`, "writes network"},
	} {
		t.Run(tt.sql, func(t *testing.T) {
			var got []string
			for _, u := range tableUses(tt.sql) {
				if u.table != "unnest" {
					got = append(got, u.String())
				}
			}
			slices.Sort(got)
			if got := strings.Join(got, ", "); got != tt.want {
				t.Errorf("tables that the SQL text uses: got %q, want %q", got, tt.want)
			}
		})
	}
}

// sqlText is a string expression of a Go file. In the field `text`, a question mark stands for each part of
// the expression that is not a string literal.
type sqlText struct {
	text, position string
}

// sqlTexts returns the string expressions of a file, except for error texts and struct tags. A concatenation
// of strings counts as one string expression.
func sqlTexts(t *testing.T, file string) []sqlText {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var texts []sqlText
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.SelectorExpr); ok && (called.Sel.Name == "Errorf" || called.Sel.Name == "NotFoundOr") {
				return false
			}
		case *ast.BinaryExpr, *ast.BasicLit:
			if text := literalText(n.(ast.Expr)); strings.Trim(text, "? ") != "" {
				texts = append(texts, sqlText{text, fset.Position(n.Pos()).String()})
				return false
			}
		}
		return true
	})
	return texts
}

func literalText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return literalText(e.X) + literalText(e.Y)
		}
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); e.Kind == token.STRING && err == nil {
			return text
		}
	}
	return " ? "
}

var sqlToken = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*|[(),?]`)

// fromListEnds are the words that end the list of tables after `from` or `using`.
var fromListEnds = []string{
	"where",
	"group",
	"order",
	"limit",
	"returning",
	"for",
	"set",
	"union",
	"on",
	"having",
	"when",
}

// tableUses returns the names that an SQL text uses as tables. tableUses does not check whether tables with
// these names exist.
func tableUses(sql string) []use {
	var uses []use
	depth := 0
	// key: depth of parentheses; true inside a list of tables, in which a comma separates two tables
	inList := map[int]bool{}
	var previous, beforeThat string
	for _, word := range sqlToken.FindAllString(strings.ToLower(sql), -1) {
		switch {
		case word == "(":
			depth++
		case word == ")":
			delete(inList, depth)
			depth--
		case slices.Contains(fromListEnds, word):
			delete(inList, depth)
		case word == "from" || word == "using":
			inList[depth] = true
		case word == "only" || word == "table":
			continue // a keyword that may stand before the table's name
		case previous == "update" && (word == "set" || word == "of" || word == "skip" || word == "nowait"):
			// The word is a keyword of `on conflict do update set` or `for update of`, not a table.
		case previous == "into" || previous == "update" || previous == "lock" || previous == "truncate",
			previous == "from" && beforeThat == "delete":
			uses = append(uses, use{word, true})
		case previous == "from", previous == "using", previous == "join", previous == "," && inList[depth]:
			uses = append(uses, use{word, false})
		}
		previous, beforeThat = word, previous
	}
	return uses
}
