// Package internal contains only tests of the whole source tree: they check which package imports which, how
// long files and functions are, and whether the names in the documentation exist.
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

// packageRule is the import rule of one package.
type packageRule struct {
	// packages of this module that it may import, relative to the module; a final /... includes all packages
	// below
	may    []string
	never  []string // external packages that it must not import, including all packages below them
	always []string // reserved packages that it may import
	pure   bool     // its functions use no I/O, no clock and no goroutine
	why    string   // the reason for the rule; a failing test prints it
}

// reserved contains external packages that only some packages may import, each with the reason for this
// restriction. A package may import a reserved package only if the rule of the importing package names the
// reserved package.
var reserved = map[string]string{
	"github.com/jackc/pgx/v5":                 "only the stores access the database",
	"github.com/pressly/goose/v3":             "only internal/store/db migrates the schema",
	"database/sql":                            "only the stores access the database",
	"go.temporal.io/sdk":                      "APIs, rules and stores are independent of Temporal",
	"github.com/gophercloud/gophercloud":      "only internal/identity calls Keystone, and only internal/cloud provisions reservations",
	"github.com/sony/gobreaker":               "only internal/identity has a circuit breaker of its own process; internal/odl shares one between processes",
	"github.com/spf13/cobra":                  "only starter has a command line",
	"github.com/spf13/pflag":                  "only starter has a command line",
	"go.yaml.in/yaml/v3":                      "only internal/config reads settings, internal/identity/policy reads policies, and starter prints YAML",
	"github.com/fergusstrange":                "only internal/devstack starts servers for development",
	"github.com/prometheus/client_model":      "only internal/server serves metrics",
	"github.com/prometheus/common":            "only internal/server serves metrics",
	"github.com/prometheus/client_golang":     "only long-running components export metrics",
	"github.com/rabbitmq/amqp091-go":          "only internal/api/rpc/oslomsg uses AMQP",
	"go.opentelemetry.io/otel/exporters/otlp": "only internal/tracing sends traces",
	"charm.land/bubbletea/v2":                 "only starter/top takes the whole terminal",
	"github.com/charmbracelet/x":              "only starter knows the terminal and the widths of characters",
	"github.com/anishathalye/porcupine":       "only tests check histories for linearizability",
}

var (
	temporal   = "go.temporal.io/sdk"
	pgx        = "github.com/jackc/pgx/v5"
	prometheus = "github.com/prometheus/client_golang"
	amqp       = "github.com/rabbitmq/amqp091-go"
	yaml       = "go.yaml.in/yaml/v3"

	otlpExporter = "go.opentelemetry.io/otel/exporters/otlp"
)

// packageRules contains the import rule of each package, by the path of the package in the module.
var packageRules = map[string]packageRule{
	"worker": {
		may: []string{"internal/server"},
		why: "contains only main: tests start the same server through internal/server",
	},
	"internal/server": {
		may: []string{"activities", "workflows", "internal/..."},
		always: []string{
			temporal,
			prometheus,
			"github.com/prometheus/client_model",
			"github.com/prometheus/common",
		},
		why: "connects all components, so it may import all of them; only the stores access the database",
	},
	"internal/server/servertest": {
		may: []string{
			"internal/server",
			"internal/api/openapi/openapitest",
			"internal/config",
			"internal/contract",
			"internal/devstack",
			"internal/devstack/temporaltest",
			"internal/store/storetest",
			"internal/odl/odltest",
			"internal/notify/notifytest",
		},
		always: []string{temporal, pgx},
		why:    "starts the server and the services that it needs for tests, in the test's process or in a separate one",
	},
	"internal/interop": {
		why: "contains only tests: unmodified OpenStack clients, Neutron's agents, and the commands of the documentation",
	},
	"internal/torture/harness": {
		may: []string{
			"internal/api/openapi/openapitest",
			"internal/contract",
			"internal/devstack",
			"internal/notify/notifytest",
			"internal/odl/odltest",
			"internal/resultfile",
			"internal/server/servertest",
			"internal/store/db",
		},
		always: []string{temporal, pgx, amqp, "github.com/anishathalye/porcupine"},
		why: "starts whole deployments for the tests of internal/torture, as a service manager and as clients do; internal/store/db only to " +
			"migrate the database",
	},
	"internal/torture/hostile": {
		why: "contains only tests: hostile input, limits of memory and time, and callers without permission",
	},
	"internal/torture/kills": {
		why: "contains only tests: killed processes, faults of other servers, restores and upgrades",
	},
	"internal/torture/leases": {
		why: "contains only tests: whole leases, with faults of Nova, Neutron and the process that runs a step",
	},
	"starter": {
		may: []string{
			"starter/cli",
			"starter/resource",
			"starter/diagnosis",
			"starter/schema",
			"starter/demo",
			"starter/top",
		},
		why: "contains only main: it joins the command tables of the other packages",
	},
	"starter/cli": {
		may: []string{
			"internal/config",
			"internal/credential",
			"internal/payloadcodec",
			"internal/safeurl",
			"internal/version",
		},
		always: []string{
			temporal,
			yaml,
			"github.com/charmbracelet/x",
			"github.com/spf13/cobra",
			"github.com/spf13/pflag",
		},
		why: "runs the commands of any table: a new command or resource needs no change here",
	},
	"starter/resource": {
		may:    []string{"internal/auditlog", "internal/contract", "starter/cli"},
		always: []string{temporal, "github.com/spf13/pflag"},
		why:    "uses the HTTP APIs and Temporal, as any other client does",
	},
	"starter/diagnosis": {
		may: []string{
			"internal/api/rpc/oslomsg",
			"internal/contract",
			"internal/safeurl",
			"internal/store/db",
			"starter/cli",
			"starter/resource",
		},
		always: []string{temporal, "github.com/spf13/pflag"},
		why:    "uses the HTTP APIs and Temporal; internal/store/db only to probe the database, internal/api/rpc/oslomsg only to probe RabbitMQ",
	},
	"starter/schema": {
		may:    []string{"internal/config", "internal/store/db", "internal/version", "starter/cli"},
		always: []string{"github.com/spf13/pflag"},
		why: "migrates the schema, says with which schemas the program works, and changes which processes the database accepts, so it needs " +
			"internal/store/db and no other store",
	},
	"starter/demo": {
		may:    []string{"internal/contract", "starter/cli", "starter/resource", "starter/diagnosis"},
		always: []string{"github.com/spf13/pflag"},
		why:    "runs the commands of the other packages and checks their results; it does not call the services itself",
	},
	"starter/top": {
		may: []string{"starter/cli", "starter/resource", "starter/diagnosis"},
		always: []string{
			"charm.land/bubbletea/v2",
			"github.com/charmbracelet/x",
			"github.com/spf13/pflag",
		},
		why: "shows in a terminal what the other packages read; it changes nothing",
	},
	"bench": {
		may: []string{"bench/figure", "bench/harness", "internal/resultfile"},
		why: "contains the command line, the rounds and the report; it opens figures and knows none of them",
	},
	"bench/dataset": {
		may: []string{"bench/harness"},
		why: "contains only SQL, so that the measurements of several programs use the same rows",
	},
	"bench/figure": {
		may: []string{
			"bench/dataset",
			"bench/harness",
			"internal/contract",
			"internal/devstack",
			"internal/store",
			"internal/store/journalstore",
			"internal/odl/odltest",
			"internal/api/placement",
			"internal/api/neutron",
			"internal/identity",
			"internal/identity/policy",
			"internal/journal",
			"internal/network",
			"internal/payloadcodec",
		},
		always: []string{temporal, pgx, amqp},
		why: "measures the worker binary as a client and as an agent, and reads the rows; the stores to measure a store without the APIs; the APIs " +
			"to measure the baseline, an API in the same process as its client; the codec of payloads to measure it alone",
	},
	"bench/harness": {
		may: []string{
			"internal/contract",
			"internal/devstack",
			"internal/store/db",
			"internal/odl/odltest",
			"internal/notify/notifytest",
		},
		always: []string{temporal, pgx},
		why:    "starts the servers and the stubs for the figures, so it imports no figure; internal/store/db only to migrate the database",
	},
	"bench/cost": {
		may: []string{"bench/figure", "bench/harness", "internal/resultfile"},
		why: "measures figures with separate processes and limited processors, and computes with their CPU time; it starts no server itself",
	},
	"bench/failover": {
		may: []string{"bench/harness", "internal/resultfile"},
		why: "measures the worker binary as a client while PostgreSQL fails over; it reads the rows only to find lost writes",
	},
	"bench/benchtest": {
		may: []string{"bench/harness", "internal/devstack"},
		why: "runs the programs that measure as their users do, and knows none of them",
	},
	"bench/resultpage": {
		why: "compares texts, and knows no measurement",
	},
	"bench/growth": {
		may:    []string{"bench/dataset", "bench/harness", "internal/contract", "internal/resultfile"},
		always: []string{temporal},
		why: "measures the worker binary as a client; it reads the rows only to learn what berth has compared, and knows of Temporal only how " +
			"the relay starts a workflow",
	},
	"bench/hosts": {
		may:    []string{"bench/harness", "internal/resultfile"},
		always: []string{pgx},
		why: "measures the worker binary as Nova and as the agents of many hosts; it inserts the agents as rows, because their first heartbeats would " +
			"take longer than the measurement, and reads rows to count journal entries",
	},
	"bench/peer": {
		may:    []string{"bench/harness", "internal/devstack", "internal/resultfile", "internal/store/db"},
		always: []string{pgx},
		why: "measures the worker binary and OpenStack Placement as the same client; of bench/harness it uses the connections and the samples; it only migrates the database, and knows nothing else of berth, " +
			"so that both servers get the same requests",
	},
	"agent": {
		may:    []string{"internal/contract"},
		always: []string{temporal},
		why:    "agents outside this repository import it, so it needs no package but the one that defines the report",
	},
	"agentreport": {
		may:  []string{"internal/contract"},
		pure: true,
		why:  "agents outside this repository import it, so it needs no package but the one that defines the report",
	},
	"workflows": {
		may: []string{
			"activities",
			"internal/contract",
			"internal/lease",
			"internal/journal",
			"internal/network",
			"internal/text",
		},
		never: []string{
			"net/http",
			"math/rand",
			"crypto/rand",
			"os",
			"github.com/google/uuid",
			"go.temporal.io/sdk/client",
		},
		always: []string{temporal},
		pure:   true,
		why:    "Temporal replays workflows from their histories, so they are deterministic; activities do all I/O",
	},
	"activities": {
		may: []string{
			"internal/contract",
			"internal/coalesce",
			"internal/delivery",
			"internal/store/...",
			"internal/odl",
			"internal/notify",
			"internal/cloud",
			"internal/lease",
			"internal/journal",
			"internal/network",
			"internal/inventory",
			"internal/panics",
			"internal/text",
		},
		never:  []string{"net/http", "go.temporal.io/sdk/client", "go.temporal.io/sdk/workflow"},
		always: []string{temporal},
		why:    "accesses other services through the packages of their clients, and starts no workflow",
	},
	"internal/delivery": {
		may:    []string{"internal/network", "internal/notify", "internal/store/notificationstore"},
		never:  []string{"net/http", temporal},
		always: []string{prometheus},
		why:    "sends recorded messages from activities, and without Temporal",
	},
	"internal/contract": {
		never: []string{"net/http"},
		pure:  true,
		why:   "most packages import it, so it imports none of them and no SDK",
	},
	"internal/inventory": {
		pure: true,
		why:  "a rules package: pure functions, which any package can call and a table test can check",
	},
	"internal/network": {
		pure: true,
		why:  "a rules package: it imports no other rules package; stores and workflows combine them",
	},
	"internal/network/attribute": {
		may:  []string{"internal/network", "internal/text"},
		pure: true,
		why:  "the attributes of ports and the bodies for the controller: every package that sends an object to a client, an agent or the controller uses them",
	},
	"internal/text": {
		pure: true,
		why:  "shortens texts and checks their cost: any package may need it, so it imports no package of this module",
	},
	"internal/lease": {
		may:  []string{"internal/text"},
		pure: true,
		why:  "a rules package: the current time is an argument of its functions",
	},
	"internal/auditlog": {
		may:  []string{"internal/text"},
		pure: true,
		why:  "defines the audit records and checks their chain: the command line verifies the log without the server",
	},
	"internal/journal": {
		may:  []string{"internal/text"},
		pure: true,
		why:  "a rules package: it builds the requests to the controller and sends none",
	},
	"internal/store": {
		may: []string{
			"internal/store/db",
			"internal/store/outbox",
			"internal/store/journalstore",
			"internal/store/inventorystore",
			"internal/store/portstore",
			"internal/store/agentstore",
			"internal/store/notificationstore",
			"internal/store/leasestore",
			"internal/store/mirrorstore",
			"internal/store/metricstore",
			"internal/store/reportstore",
			"internal/store/auditstore",
		},
		why: "opens all stores on one database and reads no row itself",
	},
	"internal/store/db": {
		may:    []string{"internal/coalesce", "internal/text"},
		never:  []string{"net/http"},
		always: []string{pgx, "github.com/pressly/goose/v3", "database/sql"},
		why:    "contains pools, transactions and the schema; it reads no domain tables, so it needs no rules package",
	},
	"internal/store/outbox": storeRule("internal/contract", "internal/store/db", "internal/tracing"),
	"internal/store/journalstore": storeRule(
		"internal/contract", "internal/journal", "internal/store/db", "internal/store/outbox",
	),
	"internal/store/inventorystore": storeRule(
		"internal/cache", "internal/coalesce", "internal/inventory", "internal/store/db", "internal/tracing",
	),
	"internal/store/networkstore": storeRule(
		"internal/network",
		"internal/network/attribute",
		"internal/journal",
		"internal/store/db",
		"internal/store/journalstore",
		"internal/store/notificationstore",
	),
	"internal/store/portstore": storeRule(
		"internal/contract",
		"internal/network",
		"internal/network/attribute",
		"internal/journal",
		"internal/store/db",
		"internal/store/outbox",
		"internal/store/journalstore",
		"internal/store/networkstore",
		"internal/store/notificationstore",
	),
	"internal/store/agentstore":  storeRule("internal/store/db"),
	"internal/store/auditstore":  storeRule("internal/auditlog", "internal/store/db"),
	"internal/store/reportstore": storeRule("internal/lease", "internal/network", "internal/store/db"),
	"internal/store/notificationstore": storeRule(
		"internal/contract", "internal/network", "internal/store/db", "internal/store/outbox",
	),
	"internal/store/metricstore": storeRule("internal/network", "internal/store/db"),
	"internal/store/leasestore": storeRule(
		"internal/contract",
		"internal/lease",
		"internal/inventory",
		"internal/store/db",
		"internal/store/outbox",
		"internal/store/inventorystore",
	),
	"internal/store/mirrorstore": storeRule(
		"internal/contract", "internal/journal", "internal/store/db", "internal/store/outbox",
		"internal/store/journalstore", "internal/store/portstore",
	),
	"internal/store/storetest": {
		may: []string{
			"internal/contract",
			"internal/inventory",
			"internal/lease",
			"internal/store/...",
			"internal/devstack",
		},
		always: []string{pgx},
		why:    "creates a database for each test",
	},
	"internal/namespace": {
		may:    []string{"internal/contract", "internal/store/outbox"},
		never:  []string{"net/http"},
		always: []string{temporal},
		why:    "binds the database to a Temporal namespace for the relay and the reconciler",
	},
	"internal/reconciler": {
		may: []string{
			"internal/contract",
			"internal/namespace",
			"internal/panics",
			"internal/store/db",
			"internal/store/outbox",
			"internal/store/reportstore",
		},
		never:  []string{"net/http"},
		always: []string{temporal, prometheus},
		why:    "compares the rows of all workflow types with Temporal: a new type needs no change here",
	},
	"internal/relay": {
		may: []string{
			"internal/contract",
			"internal/namespace",
			"internal/store/db",
			"internal/store/outbox",
			"internal/text",
			"internal/tracing",
		},
		never:  []string{"net/http"},
		always: []string{temporal, prometheus},
		why:    "delivers the notes of all workflow types: a new type needs no change here; internal/store/db only to name its class of database work",
	},
	"internal/feedback": {
		may: []string{
			"internal/network",
			"internal/odl",
			"internal/panics",
			"internal/store/db",
			"internal/store/portstore",
			"internal/text",
		},
		why: "stores what the controller reports; it depends on no workflow, and internal/odl implements the protocol",
	},
	"internal/odl": {
		may: []string{"internal/safeurl", "internal/text"},
		why: "an HTTP client of the controller; internal/journal interprets the responses",
	},
	"internal/odl/odltest": {
		why: "is a stub of OpenDaylight; it shares no code with the client that it tests",
	},
	"internal/notify": {
		may: []string{"internal/coalesce", "internal/safeurl"},
		why: "sends events to Nova and to webhooks; it reads no database",
	},
	"internal/notify/notifytest": {
		why: "contains stubs of Nova, Neutron and a webhook; it shares no code with the client that it tests",
	},
	"internal/resultfile": {
		why: "writes files, and knows no measurement",
	},
	"internal/version": {
		why: "describes the build of a program and the versions of its APIs; every program imports it, so it imports no package of this module",
	},
	"internal/tracing": {
		may:    []string{"internal/text"},
		always: []string{otlpExporter},
		why:    "carries traces and request IDs in contexts; most packages may import it, so it imports almost no package of this module",
	},
	"internal/tracing/temporaltrace": {
		may:    []string{"internal/tracing"},
		never:  []string{"net/http"},
		always: []string{temporal},
		why:    "carries traces through any workflow, so it knows no workflow",
	},
	"internal/payloadcodec": {
		may:    []string{"internal/contract"},
		never:  []string{"net/http"},
		always: []string{temporal},
		why:    "encrypts what any workflow stores in Temporal, so it knows only the messages that stay in clear text",
	},
	"internal/cache": {why: "keeps values of any kind"},
	"internal/coalesce": {
		may: []string{"internal/panics"},
		why: "combines concurrent calls of any operation",
	},
	"internal/panics": {
		why: "any package with goroutines of its own may need it, so it imports no package of this module",
	},
	"internal/safeurl": {
		may: []string{"internal/text"},
		why: "builds and checks the URLs of any outgoing request, and hides their secrets",
	},
	"internal/cloud": {
		may:    []string{"internal/coalesce", "internal/lease", "internal/safeurl", "internal/text"},
		always: []string{"github.com/gophercloud/gophercloud"},
		why:    "provisions reservations in Nova and Neutron; the caller passes the reservations, so it reads no database",
	},
	"internal/identity": {
		may:    []string{"internal/cache", "internal/panics", "internal/safeurl"},
		always: []string{"github.com/gophercloud/gophercloud", "github.com/sony/gobreaker"},
		why:    "authenticates callers; internal/identity/policy and the APIs authorize them",
	},
	"internal/identity/policy": {
		may:    []string{"internal/identity"},
		always: []string{yaml},
		why:    "evaluates policies; the APIs define the operations",
	},
	"internal/identity/keystonetest": {
		why: "is a stub of Keystone; it shares no code with the client that it tests",
	},
	"internal/config": {
		may:    []string{"internal/safeurl"},
		always: []string{yaml},
		why:    "only main reads settings; it passes them to other packages as values",
	},
	"internal/credential": {
		may:    []string{"internal/config"},
		always: []string{temporal},
		why:    "reads the files that the settings and Temporal's settings name, so that the processes and the command line find the same ones",
	},
	"internal/devstack": {
		may:    []string{"internal/contract"},
		always: []string{pgx, "github.com/fergusstrange"},
		why:    "starts PostgreSQL and Temporal servers; of this module it needs only the names of the search attributes",
	},
	"internal/devstack/temporaltest": {
		may:    []string{"internal/contract", "internal/devstack"},
		always: []string{temporal},
		why:    "creates a Temporal namespace for each test",
	},
	"internal/interop/suites": {
		may: []string{"internal/config", "internal/devstack", "internal/network"},
		why: "runs test suites of OpenStack against the program worker, so it shares no code with the API",
	},
	"internal/docpage": {
		why: "reads tables of the documentation for the tests of any package, so it imports no package of this module",
	},
	"internal/devstack/teststack": {
		may: []string{"internal/devstack"},
		why: "starts one server of each kind for all tests of a package",
	},
	"internal/api/osapi": {
		may: []string{
			"internal/tracing",
			"internal/auditlog",
			"internal/identity",
			"internal/panics",
			"internal/store/auditstore",
			"internal/store/db",
			"internal/text",
		},
		why: "contains the parts that all HTTP APIs share; it maps the stores' errors and needs no rules package",
	},
	"internal/api/openapi": {
		may: []string{"internal/api/osapi"},
		why: "builds the OpenAPI documents of all APIs from their descriptions; it knows no API",
	},
	"internal/api/openapi/openapitest": {
		may: []string{"internal/api/openapi", "internal/api/osapi"},
		why: "compares the answers of any API with its document; it imports no API, so that the tests of each API can import it",
	},
	"internal/api/placement": apiRule(
		"internal/inventory", "inventorystore", "internal/identity/policy", "internal/text",
	),
	"internal/api/neutron": apiRule(
		"internal/network", "portstore", "internal/network/attribute", "internal/identity/policy",
	),
	"internal/api/blazar": apiRule(
		"internal/lease", "leasestore", "internal/identity/policy", "internal/text",
	),
	"internal/api/agent": apiRule(
		"internal/network", "portstore", "internal/panics", "internal/store/agentstore",
	),
	"internal/api/rpc": {
		may: []string{
			"internal/api/rpc/oslomsg",
			"internal/store/agentstore",
			"internal/store/networkstore",
			"internal/store/notificationstore",
			"internal/store/portstore",
			"internal/store/db",
			"internal/network",
			"internal/network/attribute",
		},
		always: []string{prometheus},
		why:    "implements the agents' RPC methods: decodes a request, calls the store, encodes the result; internal/api/rpc/oslomsg implements the protocol",
	},
	"internal/api/rpc/oslomsg": {
		may:    []string{"internal/panics", "internal/text"},
		always: []string{prometheus, amqp},
		why:    "implements oslo.messaging's RPC over RabbitMQ for any methods, so it imports no package that knows a method",
	},
	"internal/api/journal": apiRule("internal/journal", "journalstore", "internal/store/mirrorstore"),
	"internal/api/operator": apiRule(
		"internal/inventory",
		"inventorystore",
		"internal/store/outbox",
		"internal/store/mirrorstore",
		"internal/journal",
		"internal/contract",
		"internal/network",
		"internal/store/portstore",
		"internal/store/agentstore",
		"internal/identity/policy",
		"internal/auditlog",
		"internal/store/auditstore",
		"internal/store/reportstore",
	),
	"internal/api/console": {
		may: []string{
			"internal/api/osapi",
			"internal/identity",
			"internal/contract",
			"internal/inventory",
			"internal/journal",
			"internal/lease",
			"internal/network",
			"internal/panics",
			"internal/store/db",
			"internal/store/inventorystore",
			"internal/store/journalstore",
			"internal/store/leasestore",
			"internal/store/mirrorstore",
			"internal/store/outbox",
			"internal/store/portstore",
			"internal/store/reportstore",
			"internal/text",
		},
		why: "shows the objects of all stores together, so it reads several stores through their exported methods; it only pauses and resumes the journal, and calls no other service",
	},
}

// storeRule returns the import rule of a store package. The store package may import the packages in the
// parameter `may`.
func storeRule(may ...string) packageRule {
	return packageRule{
		may:    may,
		never:  []string{"net/http"},
		always: []string{pgx},
		why:    "a transaction makes no call outside the database; a store accesses its own tables and uses the stores that it imports",
	}
}

// apiRule returns the import rule of the package of an HTTP API. The package of an HTTP API may import the
// API's package of rules, the API's store, and internal/store/db for errors and listings.
func apiRule(rules, store string, more ...string) packageRule {
	return packageRule{
		may: append(
			[]string{
				"internal/api/openapi",
				"internal/api/osapi",
				"internal/identity",
				rules,
				"internal/store/" + store,
				"internal/store/db",
				"internal/version",
			},
			more...),
		why: "decodes a request, calls its store, encodes the result; it calls neither Temporal nor the controller nor another API",
	}
}

func TestImports_FollowPackageRules(t *testing.T) {
	t.Parallel()
	found := packages(t)
	for name, imports := range found {
		r, ok := packageRules[name]
		if !ok {
			t.Errorf(
				"packageRules has no rule for %s: add a rule with the packages that this package may import and the reason for the rule",
				name,
			)
			continue
		}
		for _, imported := range imports {
			if why := r.violation(imported); why != "" {
				t.Errorf("%s must not import %s: %s", name, imported, why)
			}
		}
	}
}

// If the name of a reserved package is misspelt, or if go.mod no longer requires the package, the rule for
// the package has no effect, so this test fails.
func TestPackageRules_NameRequiredModulesAndHaveReasons(t *testing.T) {
	t.Parallel()
	modules, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for name := range reserved {
		if strings.Contains(name, ".") && !strings.Contains(string(modules), name) {
			t.Errorf(
				"external package %s: the variable `reserved` names the package, but go.mod does not require it",
				name,
			)
		}
	}
	for name, r := range packageRules {
		if r.why == "" {
			t.Errorf("rule of %s in packageRules: want a reason in the field `why`, got none", name)
		}
	}
}

func TestPurePackages_UseNoClockNetworkOrGoroutine(t *testing.T) {
	t.Parallel()
	for name, r := range packageRules {
		if !r.pure {
			continue
		}
		for _, file := range packageFiles(t, name) {
			for _, found := range impurities(t, file) {
				t.Error(found)
			}
		}
	}
}

// violation returns the reason why the package of rule r must not import the package `imported`, or "" if the
// import is allowed.
func (r packageRule) violation(imported string) string {
	if internal, ok := strings.CutPrefix(imported, "berth/"); ok {
		for _, may := range r.may {
			if parent, subtree := strings.CutSuffix(may, "/..."); internal == may ||
				subtree && isWithin(internal, parent) {
				return ""
			}
		}
		return r.why
	}
	for _, never := range r.never {
		if isWithin(imported, never) {
			return r.why
		}
	}
	for _, always := range r.always {
		if isWithin(imported, always) {
			return ""
		}
	}
	for name, why := range reserved {
		if isWithin(imported, name) {
			return why
		}
	}
	if r.pure &&
		slices.Contains([]string{"os", "io/fs", "log", "log/slog", "syscall", "context", "sync"}, imported) {
		return r.why
	}
	return ""
}

// isWithin reports whether the package `imported` is the package `parent` or is below that package.
func isWithin(imported, parent string) bool {
	return imported == parent || strings.HasPrefix(imported, parent+"/")
}

// impurities returns the uses of clocks, goroutines and the network in a file of a pure package. A pure
// package may use net/http's names of HTTP methods and statuses.
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
			report(n, "a goroutine in a pure package")
		case *ast.SelectStmt:
			report(n, "a select in a pure package")
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			if !ok || pkg.Obj != nil { // a variable, not a package
				break
			}
			clock := pkg.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}, n.Sel.Name)
			network := pkg.Name == "http" && !strings.HasPrefix(n.Sel.Name, "Method") && !strings.HasPrefix(n.Sel.Name, "Status")
			network = network || pkg.Name == "net" && slices.ContainsFunc([]string{"Dial", "Listen", "Lookup", "Resolve", "Interface"}, func(p string) bool { return strings.HasPrefix(n.Sel.Name, p) })
			if clock || network {
				report(n, pkg.Name+"."+n.Sel.Name+" in a pure package")
			}
		}
		return true
	})
	return found
}

// packages returns all packages of the module with their direct imports, without tests.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir("..", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || dir == ".." {
			return err
		}
		if name := d.Name(); strings.HasPrefix(name, ".") || name == "testdata" ||
			exists(filepath.Join(dir, "go.mod")) {
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
		t.Fatalf("list the packages: got %d, want at least 10", len(found))
	}
	return found
}

// packageFiles returns the files of a package, or none if the package does not exist.
func packageFiles(t *testing.T, name string) []string {
	t.Helper()
	if !exists(filepath.Join("..", name)) {
		return nil
	}
	return goFiles(t, filepath.Join("..", name))
}

// goFiles returns the Go files of a directory that the compiler builds, without tests.
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

// importsOf returns the imports of a file.
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
