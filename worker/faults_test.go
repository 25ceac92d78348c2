package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/devstack/temporaltest"
	"berth/internal/notify/notifytest"
	"berth/internal/odl/odltest"
	"berth/internal/store/storetest"
)

// patience is how long a fault may take to heal. Temporal gives a killed worker's task to another one after ten
// seconds, and the machine may be slow.
const patience = 4 * time.Minute

// site is what stands around berth's processes: rows, Temporal, a controller and a Nova, which outlive them.
type site struct {
	*testing.T
	db       string
	odl      *odltest.Controller
	nova     *notifytest.Nova
	meets    atomic.Pointer[func(*http.Request)] // what a request meets on its way to the controller
	settings []string
}

// newSite has a database and a namespace of its own; settings win over them.
func newSite(t *testing.T, db string, temporal ...string) *site {
	t.Helper()
	s := &site{T: t, db: db, odl: odltest.New(), nova: &notifytest.Nova{}}
	// With the canary there from the beginning, no full sync begins when a schedule's minute happens to be over.
	s.odl.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, odltest.BasePath+"/networks",
		strings.NewReader(`{"network":{"id":"`+canary+`"}}`)))
	controller := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := s.meets.Load(); f != nil {
			(*f)(r)
		}
		s.odl.ServeHTTP(w, r)
	}))
	s.settings = append([]string{"BERTH_LISTEN=127.0.0.1:0", "BERTH_DATABASE_URL=" + db, "BERTH_ODL_URL=" + controller + odltest.BasePath,
		"BERTH_NOVA_URL=" + serve(t, s.nova), "TEMPORAL_CONFIG_FILE=" + os.DevNull}, temporal...)
	return s
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server, err := devstack.Serve(0, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server.URL
}

// namespace makes a namespace and the settings that lead there.
func namespace(t *testing.T) (client.Client, []string) {
	t.Helper()
	n := temporaltest.New(t)
	unswept(t, n.Client)
	return n.Client, []string{"TEMPORAL_ADDRESS=" + n.Address, "TEMPORAL_NAMESPACE=" + n.Name}
}

// unswept lets nobody sweep: what a fault loses would be found, and the test would pass nevertheless.
func unswept(t *testing.T, c client.Client) {
	t.Helper()
	id := contract.MaintenanceID(contract.KeySweep)
	if _, err := c.ScheduleClient().Create(t.Context(), client.ScheduleOptions{ID: id, Paused: true,
		Action: &client.ScheduleWorkflowAction{ID: id, Workflow: contract.Maintenance, TaskQueue: contract.TaskQueue(contract.Maintenance)},
	}); err != nil {
		t.Fatal(err)
	}
}

// sharedSite stands on the servers of the run, which nobody disturbs.
func sharedSite(t *testing.T) (*site, client.Client) {
	t.Helper()
	c, settings := namespace(t)
	return newSite(t, storetest.URL(t), settings...), c
}

// child is a real process of the worker.
type child struct {
	*devRun
	t   *testing.T
	url string
}

var serving = regexp.MustCompile(`msg=serving address=(\S+)`)

// start runs a process of those roles and waits until it serves.
func (s *site) start(roles string) *child {
	s.Helper()
	c := &child{devRun: spawn(s.T, program(s.T, "worker"), []string{"-roles", roles}, s.settings...), t: s.T}
	s.Cleanup(func() {
		c.kill()
		if s.Failed() {
			s.Logf("process of %s:\n%s", roles, c.said())
		}
	})
	s.until("the process of "+roles+" serves", func() string {
		select {
		case <-c.done:
			s.Fatalf("the process of %s ended:\n%s", roles, c.said())
		default:
		}
		if m := serving.FindStringSubmatch(c.said()); m != nil {
			c.url = "http://" + m[1]
			return ""
		}
		return "it says " + c.said()
	})
	return c
}

// kill is kill -9.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.done
}

type object = map[string]any

// do sends a request. An error means that there was no answer.
func (c *child) do(method, path string, body any) (int, object, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("X-Auth-Token", "admin")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("OpenStack-API-Version", "placement 1.28")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	var o object
	err = json.NewDecoder(answer.Body).Decode(&o)
	if answer.StatusCode == http.StatusNoContent {
		err = nil
	}
	return answer.StatusCode, o, err
}

// must is do for a request that succeeds.
func (c *child) must(method, path string, body any) object {
	c.t.Helper()
	code, o, err := c.do(method, path, body)
	if err != nil || code >= http.StatusMultipleChoices {
		c.t.Fatalf("%s %s: %d %v %v", method, path, code, o, err)
	}
	return o
}

// create makes an object of the Networking API and returns its ID.
func (c *child) create(typ string, o object) string {
	c.t.Helper()
	return c.must("POST", "/networking/v2.0/"+typ+"s", object{typ: o})[typ].(object)["id"].(string)
}

func (c *child) network(name string) string {
	c.t.Helper()
	return c.create("network", object{"name": name})
}

func (c *child) subnet(network string) string {
	c.t.Helper()
	return c.create("subnet", subnetOf(network))
}

func subnetOf(network string) object {
	return object{"network_id": network, "ip_version": 4, "cidr": "10.20.0.0/24"}
}

// portOf is a port of a server, which two agents have to work for.
func portOf(network string) object {
	return object{"network_id": network, "binding:host_id": "cmp-1", "device_owner": "compute:nova", "device_id": uuid.NewString()}
}

// agents lets the two agents live.
func (c *child) agents() {
	c.t.Helper()
	c.must("POST", "/agent/v1/state", object{"agent_type": "DHCP agent", "host": "net-1"})
	c.must("POST", "/agent/v1/state", object{"agent_type": "Open vSwitch agent", "host": "cmp-1"})
}

// reportsOn are the reports of both agents.
func reportsOn(port string) object {
	return object{"reports": []object{{"port": port, "entity": "L2", "host": "cmp-1"}, {"port": port, "entity": "DHCP", "host": "net-1"}}}
}

// until waits until f has nothing to wait for any more; it answers what is missing.
func (s *site) until(what string, f func() string) {
	s.Helper()
	missing := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if missing = f(); missing == "" {
			return
		}
	}
	s.Fatalf("waited %s until %s: %s", patience, what, missing)
}

// rows runs a query that answers with one text column.
func (s *site) rows(sql string, args ...any) []string {
	s.Helper()
	c, err := pgx.Connect(s.Context(), s.db)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	found, err := c.Query(s.Context(), sql, args...)
	if err != nil {
		s.Fatal(err)
	}
	list, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		s.Fatal(err)
	}
	return list
}

// none waits until a query finds nothing.
func (s *site) none(what, sql string) {
	s.Helper()
	s.until(what, func() string { return strings.Join(s.rows(sql), "\n") })
}

// unfinished tells what the journal still has to bring to the controller.
const unfinished = `select format('entry %s (%s %s) is %s: %s', seq, operation, object_type, state, last_error) from journal_entry where state <> 'completed' order by seq limit 5`

// canary is a network that the controller has and berth has not; see journal.Canary.
const canary = "bd8db3a8-2b30-4083-a8b3-b3fd46401142"

// mirrored waits until every change is at the controller and checks that each was applied there once, in its
// order, and that the controller has what the rows have. Nobody helped: no entry failed.
func (s *site) mirrored() {
	s.Helper()
	s.none("every change is mirrored", unfinished)
	applied, recorded := map[string][]string{}, map[string][]string{}
	for _, seen := range s.odl.Requests() {
		op := map[string]string{"POST": "create", "PUT": "update", "DELETE": "delete"}[seen.Method]
		if key := seen.Type + " " + seen.ID; seen.Applied && seen.ID != canary {
			applied[key] = append(applied[key], fmt.Sprint(op, " ", seen.Revision))
		}
	}
	for _, line := range s.rows(`
		select format('%s %s=%s %s', object_type, object_id, operation,
			case when operation = 'delete' then '0' else data->>'revision_number' end)
		from journal_entry
		where object_id <> '` + canary + `'
		order by seq`) {
		key, change, _ := strings.Cut(line, "=")
		recorded[key] = append(recorded[key], change)
	}
	s.same("changes, as the journal has them and as the controller applied them", recorded, applied)
	there := []string{}
	for _, r := range s.odl.Records() {
		if r.Object != nil && r.ID != canary {
			there = append(there, fmt.Sprint(r.Type, " ", r.ID, " ", r.Object["name"]))
		}
	}
	s.same("objects, of berth and of the controller", s.rows(`
		select format('%s %s %s', type, id, name)
		from (
			select 'network' as type, id, name from network
			union all select 'port', id, name from port
			union all select 'security_group', id, name from security_group
			union all select 'security_group_rule', id, '<nil>' from security_group_rule
			union all select 'subnet', id, name from subnet) as o
		order by type, id`), there)
	for _, v := range s.odl.Violations() {
		s.Error(v)
	}
}
