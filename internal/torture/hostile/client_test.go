package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"

	"berth/internal/api/osapi"
	"berth/internal/devstack/temporaltest"
	"berth/internal/identity"
	"berth/internal/server"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// hostileClient sends hostile requests to a berth server whose database has one object of every kind.
type hostileClient struct {
	t         *testing.T
	app       *server.App
	temporal  client.Client // unlike the server's own client, it waits for a Temporal that is slow
	database  string        // its URL
	address   string        // of the HTTP server
	conn      *pgx.Conn
	http      *http.Client
	ids       map[string]string // values of the placeholders {name} in templates
	allWrites int64             // number of write statements since the start
	writes    map[string]int64  // number of write statements per table since the start
	rows      map[string]string // digest of each table after the last accepted write
	digestSQL map[string]string // query for the digest of each table
}

func newHostileClient(t *testing.T) *hostileClient { return newHostileClientFor(t, "api") }

func newHostileClientFor(t *testing.T, roles string) *hostileClient {
	t.Helper()
	return newHostileClientOn(t, storetest.URL(t), roles)
}

// newHostileClientOn starts a server on the given database.
func newHostileClientOn(t *testing.T, database, roles string, settings ...string) *hostileClient {
	t.Helper()
	// before the server's own writes, which would deadlock with the creation of the triggers
	storetest.Exec(t, database, countWritesSQL)
	n := temporaltest.New(t)
	app := servertest.StartApp(t, roles, append(settings,
		"BERTH_DATABASE_URL="+database, "TEMPORAL_ADDRESS="+n.Address, "TEMPORAL_NAMESPACE="+n.Name)...)
	h := &hostileClient{
		t:        t,
		app:      app,
		temporal: n.Client,
		database: database,
		address:  app.Address(),
		conn:     storetest.Connect(t, database),
		http:     &http.Client{Timeout: 2 * time.Minute},
		ids:      map[string]string{},
	}
	h.seed()
	h.digestSQL = h.textByTable(`
		select relname, format('select %L, count(*) || '' '' || coalesce(md5(string_agg(t::text, '','' order by t::text)), '''') from %I t', relname, relname)
		from pg_class
		where ` + comparedTables)
	h.writtenTables()
	h.rows = h.digests(slices.Collect(maps.Keys(h.digestSQL)))
	return h
}

// Placeholders in request bodies for the current generations of the provider and the consumer that seed
// created.
const providerGenerationMark, consumerGenerationMark = "424242", "434343"

// attack is a hostile HTTP request.
type attack struct {
	method, path string
	body         string
	header       http.Header
	token        string // "-" means no token, an empty string means the administrator's token
}

func (a attack) String() string {
	short := func(s string) string {
		if len(s) > 300 {
			return s[:300] + fmt.Sprintf("… (%d bytes)", len(s))
		}
		return s
	}
	request := short(fmt.Sprintf("%s %s %v %s", a.method, short(a.path), a.header, a.token))
	return request + " " + short(fmt.Sprintf("%q", a.body))
}

// send sends the request of an attack. send does not normalize the path of the request, because the path may
// be invalid on purpose.
func (h *hostileClient) send(ctx context.Context, a attack) (int, []byte, http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, a.method, "http://"+h.address+"/", strings.NewReader(a.body))
	if err != nil {
		return 0, nil, nil, err
	}
	path, query, _ := strings.Cut(a.path, "?")
	r.URL = &url.URL{
		Scheme:   "http",
		Host:     h.address,
		Opaque:   "//" + h.address + path,
		RawQuery: query,
	}
	if a.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if strings.HasPrefix(a.path, "/placement") {
		r.Header.Set("OpenStack-API-Version", "placement 1.39")
	}
	switch a.token {
	case "":
		r.Header.Set("X-Auth-Token", "admin")
		r.Header.Set("X-Roles", "admin,service")
	case "-":
	default:
		r.Header.Set("X-Auth-Token", a.token)
	}
	for name, values := range a.header {
		r.Header[name] = values
	}
	w, err := h.http.Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = w.Body.Close() }()
	body, err := io.ReadAll(w.Body)
	return w.StatusCode, body, w.Header, err
}

// attack sends a hostile request and returns the status of the answer. attack checks that the status is not
// 5xx, that the body of an error has the format of the API, and that a refused request changes no table.
func (h *hostileClient) attack(a attack) int {
	h.t.Helper()
	a.body = h.fillGenerations(a.body)
	status, body, header, err := h.send(h.t.Context(), a)
	if err != nil {
		h.t.Errorf("send the request %s: got no answer: %v", a, err)
		return 0
	}
	if status >= 500 {
		h.t.Errorf("send the request %s: got status %d, body %.300s; want no server error", a, status, body)
	}
	if status >= 400 && a.method != http.MethodHead {
		if len(body) > 16<<10 {
			h.t.Errorf(
				"send the request %s: got an error body of %d bytes, want at most 16 KiB: %.200s",
				a, len(body), body,
			)
		}
		if err := checkErrorBody(a.path, status, header, body); err != nil {
			h.t.Errorf(
				"send the request %s: got status %d, body %.300s; want an error in the format of the API: %v",
				a, status, body, err,
			)
		}
	}
	written := h.writtenTables()
	if len(written) == 0 {
		return status
	}
	for table, digest := range h.digests(written) {
		if status >= 400 && h.rows[table] != digest {
			h.t.Errorf(
				"send the request %s: berth refused the request with status %d, but the table %s changed from %q to %q; want no change",
				a, status, table, h.rows[table], digest,
			)
		}
		h.rows[table] = digest
	}
	return status
}

// fillGenerations replaces the placeholders for generations in a request body by the current generations.
func (h *hostileClient) fillGenerations(body string) string {
	h.t.Helper()
	if !strings.Contains(body, providerGenerationMark) && !strings.Contains(body, consumerGenerationMark) {
		return body
	}
	var provider, consumer string
	if err := h.conn.QueryRow(h.t.Context(), `
		select (select generation::text from provider where uuid = $1), coalesce((select generation::text from consumer limit 1), 'null')`, h.ids["provider"]).Scan(&provider, &consumer); err != nil {
		h.t.Fatal(err)
	}
	return strings.ReplaceAll(strings.ReplaceAll(body, providerGenerationMark, provider),
		consumerGenerationMark, consumer)
}

// checkErrorBody returns an error if the body of an error answer does not have the format of the API to which
// the request was sent.
func checkErrorBody(path string, status int, header http.Header, body []byte) error {
	if strings.HasPrefix(path, "/console/") && strings.HasPrefix(header.Get("Content-Type"), "text/html") {
		return nil // the console shows a form again, with the problem
	}
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		return err
	}
	if !strings.HasPrefix(header.Get("Content-Type"), "application/json") {
		return fmt.Errorf("got Content-Type %q, want application/json", header.Get("Content-Type"))
	}
	member := func(v any, names ...string) error {
		m, _ := v.(map[string]any)
		for _, name := range names {
			if _, ok := m[name]; !ok {
				return fmt.Errorf("the error body has no member %q, want one", name)
			}
		}
		return nil
	}
	api := strings.SplitN(strings.TrimPrefix(path, "/"), "/", 2)[0]
	switch {
	case api == "networking":
		return member(o["NeutronError"], "type", "message", "detail")
	case api == "placement" && status == http.StatusUnauthorized:
		return member(o, "message", "code", "title")
	case api == "placement":
		list, _ := o["errors"].([]any)
		if len(list) != 1 {
			return fmt.Errorf("the error body has %d errors, want 1", len(list))
		}
		return member(list[0], "status", "title", "detail", "request_id")
	case api == "reservation" && status != http.StatusUnauthorized && o["error_code"] != nil:
		return member(o, "error_code", "error_message", "error_name")
	case api == "reservation" && status != http.StatusUnauthorized:
		return member(o, "error", "error_message")
	default:
		return member(o["error"], "code", "message")
	}
}

// must sends a request, which must succeed. must returns the value at the path `at` in the JSON answer. If
// the path `at` leads through a list, must uses the first element of the list.
func (h *hostileClient) must(a attack, at ...string) string {
	h.t.Helper()
	status, body, _, err := h.send(h.t.Context(), a)
	if err != nil || status >= 300 {
		h.t.Fatalf("send the request %s, which must succeed: got status %d, body %s, error %v",
			a, status, body, err)
	}
	var v any
	_ = json.Unmarshal(body, &v)
	for _, name := range at {
		if list, ok := v.([]any); ok {
			v = list[0]
		}
		v = v.(map[string]any)[name]
	}
	return fmt.Sprint(v)
}

// seed creates one object of every kind and records the IDs of the objects.
func (h *hostileClient) seed() {
	h.t.Helper()
	post := func(path, body string) attack { return attack{method: http.MethodPost, path: path, body: h.fill(body)} }
	create := func(name, path, body string, at ...string) { h.ids[name] = h.must(post(path, body), at...) }
	find := func(name, path string, at ...string) {
		h.ids[name] = h.must(attack{method: http.MethodGet, path: h.fill(path)}, at...)
	}
	h.ids["provider"] = "7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0001"
	h.ids["consumer"] = "7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0002"
	h.ids["zero"] = "00000000-0000-0000-0000-000000000000"
	h.must(post("/agent/v1/state", `{"agent_type":"DHCP agent","host":"cmp-1"}`))
	h.must(post("/agent/v1/state", `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`))
	find("agent", "/networking/v2.0/agents?agent_type=DHCP%20agent", "agents", "id")
	create("network", "/networking/v2.0/networks", `{"network":{"name":"blue","project_id":"demo"}}`,
		"network", "id")
	create("subnet", "/networking/v2.0/subnets",
		`{"subnet":{"network_id":"{network}","ip_version":4,"cidr":"10.0.0.0/16","project_id":"demo"}}`,
		"subnet", "id")
	create("port", "/networking/v2.0/ports",
		`{"port":{"network_id":"{network}","project_id":"demo","binding:host_id":"cmp-1",`+
			`"device_id":"7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0009"}}`,
		"port", "id")
	for _, name := range []string{"lone", "single", "parent", "subport"} {
		create(name, "/networking/v2.0/ports", `{"port":{"network_id":"{network}","project_id":"demo"}}`,
			"port", "id")
	}
	create("trunk", "/networking/v2.0/trunks",
		`{"trunk":{"port_id":"{parent}","project_id":"demo",`+
			`"sub_ports":[{"port_id":"{subport}","segmentation_type":"vlan","segmentation_id":3}]}}`,
		"trunk", "id")
	create("outside", "/networking/v2.0/networks", `{"network":{"name":"out","project_id":"demo"}}`,
		"network", "id")
	h.must(post("/networking/v2.0/subnets",
		`{"subnet":{"network_id":"{outside}","ip_version":4,"cidr":"172.24.4.0/24",`+
			`"allocation_pools":[{"start":"172.24.4.100","end":"172.24.4.200"}]}}`))
	h.must(post("/reservation/v1/floatingips",
		`{"floating_network_id":"{outside}","floating_ip_address":"172.24.4.10"}`))
	create("address", "/reservation/v1/floatingips",
		`{"floating_network_id":"{outside}","floating_ip_address":"172.24.4.11"}`,
		"floatingip", "id")
	create("group", "/networking/v2.0/security-groups",
		`{"security_group":{"name":"web","project_id":"demo"}}`,
		"security_group", "id")
	find("rule", "/networking/v2.0/security-group-rules?security_group_id={group}",
		"security_group_rules", "id")
	h.must(post("/placement/resource_providers", `{"name":"cmp-1","uuid":"{provider}"}`))
	h.must(attack{
		method: http.MethodPut,
		path:   h.fill("/placement/resource_providers/{provider}/inventories"),
		body: `{"resource_provider_generation":0,"inventories":{"VCPU":{"total":8,"reserved":0,` +
			`"min_unit":1,"max_unit":8,"step_size":1,"allocation_ratio":2}}}`,
	})
	h.must(attack{
		method: http.MethodPut,
		path:   h.fill("/placement/allocations/{consumer}"),
		body: h.fill(`{"allocations":{"{provider}":{"resources":{"VCPU":1}}},"project_id":"demo",` +
			`"user_id":"u","consumer_generation":null,"consumer_type":"INSTANCE"}`),
	})
	h.must(attack{method: http.MethodPut, path: "/placement/traits/CUSTOM_GOLD"})
	h.must(post("/placement/resource_classes", `{"name":"CUSTOM_SLOT"}`))
	h.must(post("/placement/resource_providers",
		`{"name":"cmp-2","uuid":"7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0003"}`))
	h.must(attack{
		method: http.MethodPut,
		path:   "/placement/resource_providers/7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0003/inventories",
		body:   `{"resource_provider_generation":0,"inventories":{"VCPU":{"total":8}}}`,
	})
	create("host", "/reservation/v1/os-hosts", `{"name":"cmp-2","rack":"r1"}`, "host", "id")
	create("segment", "/reservation/v1/networks",
		`{"network_type":"vlan","physical_network":"physnet1","segment_id":7,"rack":"r1"}`,
		"network", "id")
	create("device", "/reservation/v1/devices",
		`{"name":"iot-1","device_type":"container","device_driver":"zun","rack":"r1"}`,
		"device", "id")
	for _, name := range []string{"cmp-8", "cmp-9"} { // for hosts that tests register
		h.must(post("/placement/resource_providers", `{"name":"`+name+`"}`))
	}
	lease := post("/reservation/v1/leases",
		strings.ReplaceAll(validBodies["POST /reservation/v1/leases"], "2038", "2037"))
	lease.token = "ann:demo"
	h.ids["lease"] = h.must(lease, "lease", "id")
	find("reservation", "/reservation/v1/leases/{lease}", "lease", "reservations", "id")
	h.must(attack{
		method: http.MethodPost,
		path:   "/journal/v1/runs",
		body:   validBodies["POST /journal/v1/runs"],
	}, "run", "id")
	create("token", "/operator/v1/agent-tokens", `{"host":"cmp-1"}`, "id")
	create("key", "/operator/v1/agent-keys",
		`{"host":"cmp-1","public_key":"-----BEGIN PUBLIC KEY-----\n`+
			`MCowBQYDK2VwAyEA2vthEhzGI9bz1VYbtc6N2hoMsoSjnDX29W6xucoidcs=\n-----END PUBLIC KEY-----\n"}`,
		"id")
	create("vhost", "/operator/v1/agent-vhosts", `{"host":"cmp-1"}`, "id")
	find("seq", "/journal/v1/entries?order=asc", "entries", "seq")
}

// fill replaces the placeholders in a template by the IDs of the objects that seed created.
func (h *hostileClient) fill(s string) string {
	for name, id := range h.ids {
		s = strings.ReplaceAll(s, "{"+name+"}", id)
	}
	return s
}

// concretePath replaces the parameters in the path of a route by the IDs of objects that exist.
func (h *hostileClient) concretePath(path string) string {
	for _, rule := range [][2]string{
		{"/extensions/{alias}", "/extensions/agent"},
		{"/v1/networks/{id}", "/v1/networks/{segment}"}, {"/devices/{id}", "/devices/{device}"}, {"/networks/{id}", "/networks/{network}"}, {"/subnets/{id}", "/subnets/{subnet}"}, {"/ports/{id}", "/ports/{port}"},
		{"/security-groups/{id}", "/security-groups/{group}"}, {"/security-group-rules/{id}", "/security-group-rules/{rule}"}, {"/quotas/{project}", "/quotas/demo"},
		{"/trunks/{id}", "/trunks/{trunk}"}, {"/network-ip-availabilities/{id}", "/network-ip-availabilities/{network}"}, {"/tags/{tag}", "/tags/gold"},
		{"/bindings/{host}", "/bindings/cmp-1"}, {"/agents/{id}", "/agents/{agent}"}, {"/leases/{id}", "/leases/{lease}"}, {"/properties/{id}", "/properties/rack"},
		{"/os-hosts/{id}", "/os-hosts/{host}"}, {"/floatingips/{id}", "/floatingips/{address}"}, {"/resource_providers/{uuid}", "/resource_providers/{provider}"},
		{"/inventories/{class}", "/inventories/VCPU"}, {"/resource_classes/{name}", "/resource_classes/CUSTOM_SLOT"},
		{"/traits/{name}", "/traits/CUSTOM_GOLD"}, {"/runs/{id}", "/runs/1"}, {"/consumers/{uuid}", "/consumers/{consumer}"}, {"/providers/{uuid}", "/providers/{provider}"},
		{"/agent-tokens/{id}", "/agent-tokens/{token}"}, {"/agent-keys/{id}", "/agent-keys/{key}"}, {"/agent-vhosts/{id}", "/agent-vhosts/{vhost}"},
		{"/blocks/{type}/{id}", "/blocks/port/{port}"}, {"/{entity}", "/firewall"},
		{"/waiting/{party}", "/waiting/agent"}, {"/static/{file}", "/static/console.css"}, {"/hosts/{id}", "/hosts/{host}"}, {"/providers/{id}", "/providers/{provider}"}, {"/consumers/{id}", "/consumers/{consumer}"},
	} {
		path = strings.ReplaceAll(path, rule[0], rule[1])
	}
	return h.fill(path)
}

// forEachGroup runs f as parallel subtests, each for one group of APIs. Each subtest has a server and a
// database of its own, because the requests to one server are sent one after another.
func forEachGroup(t *testing.T, f func(h *hostileClient, group func(prefix string) bool)) {
	t.Helper()
	for name, group := range map[string]func(prefix string) bool{
		"networking": func(prefix string) bool { return prefix == "/networking" },
		"placement":  func(prefix string) bool { return prefix == "/placement" },
		"others":     func(prefix string) bool { return prefix != "/networking" && prefix != "/placement" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(newHostileClient(t), group)
		})
	}
}

// forEachRoute calls the function f for each route of each API.
func forEachRoute(h *hostileClient, f func(api *osapi.API, r osapi.Route)) {
	for _, api := range h.app.APIs(identity.Noauth{}) {
		for _, r := range api.Routes {
			f(api, r)
		}
	}
}
