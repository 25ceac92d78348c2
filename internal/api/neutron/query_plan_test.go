package neutron_test

import (
	"fmt"
	"strings"
	"testing"

	"berth/internal/network"
	"berth/internal/store/networkstore"
	"berth/internal/store/storetest"
)

// grown fills the tables whose size depends on the size of a cloud: 2,000 networks of 500 projects, one of
// them with 10,000 ports of 500 projects and each of the others with one port, and a completed journal entry
// of each port. The project `guest` has ports and no network.
const grown = `
	insert into network (id, project, name, description, admin_up, shared, external, mtu, port_security, type, segment)
	select md5('network' || n)::uuid, 'project-' || n % 500, 'network-' || n, '', true, false, false, 1450, true, 'vxlan', n
	from generate_series(1, 2000) n;
	insert into subnet (id, network_id, project, name, description, cidr, gateway, dhcp, pools, dns, routes, ra_mode, address_mode)
	select md5('subnet' || n)::uuid, md5('network' || n)::uuid, 'project-' || n % 500, 'subnet-' || n, '', '10.0.0.0/12', '10.0.0.1', true,
		'[{"start":"10.0.0.2","end":"10.15.255.254"}]', '{}', '[]', '', ''
	from generate_series(1, 2000) n;
	insert into port (id, network_id, project, name, description, admin_up, mac, device_id, device_owner, status, host, vnic, profile, vif, port_security)
	select md5('port' || n)::uuid, md5('network' || greatest(n - 10000, 1))::uuid, case n % 100 when 3 then 'guest' else 'project-' || n % 500 end, 'port-' || n, '', true,
		lpad(to_hex(2199023255552 + n), 12, '0')::macaddr, md5('server' || n), 'compute:nova', 'ACTIVE', 'cmp-' || n % 200, 'normal', '{}', 'ovs', true
	from generate_series(1, 12000) n;
	insert into port_address (subnet_id, address, port_id, position)
	select md5('subnet' || greatest(n - 10000, 1))::uuid, '10.0.1.0'::inet + n, md5('port' || n)::uuid, 0 from generate_series(1, 12000) n;
	insert into journal_entry (object_type, object_id, operation, data, parents, state, attempt, project, name, taken_at, finished_at)
	select 'port', md5('port' || n)::uuid::text, 'create', '{}', array['network/' || md5('network' || greatest(n - 10000, 1))::uuid], 'completed', 1, 'project-' || n % 500, '', now(), now()
	from generate_series(1, 12000) n`

// growing lists the tables of `grown`.
var growing = []string{"network", "subnet", "port", "port_address", "journal_entry"}

// TestPlan_MainRoutesReadFewRowsOfGrowingTables fails if a route reads a whole table whose size depends on
// the size of the cloud, or counts or adds up its rows.
func TestPlan_MainRoutesReadFewRowsOfGrowingTables(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, grown)
	watch := storetest.Connect(t, url)
	openOn(t, url, networkstore.Config{}).store.Close() // the first report of a DHCP agent assigns it all networks
	storetest.FixPlans(t, url)
	id := func(kind string, n int) (id string) {
		if err := watch.QueryRow(t.Context(), `select md5($1)::uuid::text`, fmt.Sprint(kind, n)).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	busiest := id("network", 1)
	for name, call := range map[string]func(c cloud, n int){
		"POST /ports": func(c cloud, n int) {
			c.must(201, "POST", "/v2.0/ports", fmt.Sprintf(
				`{"port":{"network_id":%q,"project_id":"project-7","binding:host_id":"cmp-1","device_owner":"compute:nova","device_id":"new-%d"}}`,
				busiest, n))
		},
		"GET /ports/{id}":      func(c cloud, n int) { c.must(200, "GET", "/v2.0/ports/"+id("port", 100+n), "") },
		"GET /ports page":      func(c cloud, _ int) { c.must(200, "GET", "/v2.0/ports?limit=50", "") },
		"GET /ports of server": func(c cloud, _ int) { c.must(200, "GET", "/v2.0/ports?device_id=new-1", "") },
		"GET /ports of name":   func(c cloud, n int) { c.must(200, "GET", fmt.Sprintf("/v2.0/ports?name=port-%d", 1+n), "") },
		"GET /ports of network": func(c cloud, n int) {
			c.must(200, "GET", "/v2.0/ports?network_id="+busiest+"&limit=50&marker="+id("port", 200+n), "")
		},
		"GET /ports of member": func(c cloud, _ int) { c.as("ann:project-7").must(200, "GET", "/v2.0/ports", "") },
		"GET /ports page of member": func(c cloud, _ int) {
			c.as("ann:project-7").must(200, "GET", "/v2.0/ports?limit=50", "")
		},
		"GET /ports page of guest": func(c cloud, _ int) {
			c.as("ann:guest").must(200, "GET", "/v2.0/ports?limit=50", "")
		},
		"GET /networks of member": func(c cloud, _ int) { c.as("ann:project-7").must(200, "GET", "/v2.0/networks", "") },
		"GET /subnets of member":  func(c cloud, _ int) { c.as("ann:project-7").must(200, "GET", "/v2.0/subnets", "") },
		"PUT /ports/{id}": func(c cloud, n int) {
			c.must(200, "PUT", "/v2.0/ports/"+id("port", 300+n), `{"port":{"name":"renamed"}}`)
		},
		"DELETE /ports/{id}": func(c cloud, n int) { c.must(204, "DELETE", "/v2.0/ports/"+id("port", 400+n), "") },
		"POST /networks": func(c cloud, _ int) {
			c.must(201, "POST", "/v2.0/networks", `{"network":{"name":"new","project_id":"project-7"}}`)
		},
		"GET /networks/{id}": func(c cloud, n int) { c.must(200, "GET", "/v2.0/networks/"+id("network", 100+n), "") },
		"GET /networks page": func(c cloud, _ int) { c.must(200, "GET", "/v2.0/networks?limit=50", "") },
		"GET /subnets page":  func(c cloud, _ int) { c.must(200, "GET", "/v2.0/subnets?limit=50", "") },
		"GET /subnets of network": func(c cloud, n int) {
			c.must(200, "GET", "/v2.0/subnets?network_id="+id("network", 100+n), "")
		},
	} {
		storetest.ExpectFewReads(t, watch, name, growing, func() {
			c := openOn(t, url, networkstore.Config{})
			defer c.store.Close()
			for n := range storetest.PlanRepeats {
				call(c, n)
			}
		})
	}
}

// crowded gives a project more objects of each kind than the rows that a call may read.
const crowded = `
	update network set project = 'crowded' where id in (select md5('network' || n)::uuid from generate_series(1, 2000, 2) n);
	update subnet set project = 'crowded' where id in (select md5('subnet' || n)::uuid from generate_series(1, 2000, 2) n);
	update port set project = 'crowded' where id in (select md5('port' || n)::uuid from generate_series(1, 12000, 2) n);
	insert into security_group (id, project, name, description, stateful, tags)
	select md5('group' || n)::uuid, case when n % 2 = 1 then 'crowded' else 'project-' || n end, case n when 1 then 'default' else 'web' end, '',
		true, '{}'
	from generate_series(1, 2000) n;
	insert into security_group_rule (id, group_id, project, description, direction, ethertype, protocol, remote_ip)
	select md5('rule' || n)::uuid, md5('group' || n)::uuid, case when n % 2 = 1 then 'crowded' else 'project-' || n end, '', 'ingress', 'IPv4', 'tcp', ''
	from generate_series(1, 2000) n`

// A project can have many more objects than its quota allows: its quota was lowered, or it had none.
func TestPlan_QuotaCountsNoMoreObjectsThanItAllows(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, grown)
	storetest.ExecScript(t, url, crowded)
	openOn(t, url, networkstore.Config{}).store.Close() // the first report of a DHCP agent assigns it all networks
	storetest.Exec(t, url, `vacuum`)
	storetest.FixPlans(t, url)
	watch := storetest.Connect(t, url)
	var net, group string
	if err := watch.QueryRow(t.Context(), `select md5('network1')::uuid::text, md5('group1')::uuid::text`).Scan(&net, &group); err != nil {
		t.Fatal(err)
	}
	limits := network.Quota{}
	for _, resource := range network.QuotaResources() {
		limits[resource] = 100
	}
	for path, body := range map[string]string{
		"/v2.0/networks":             `{"network":{"name":"one more"}}`,
		"/v2.0/subnets":              `{"subnet":{"network_id":"` + net + `","cidr":"192.0.2.0/24","ip_version":4}}`,
		"/v2.0/ports":                `{"port":{"network_id":"` + net + `"}}`,
		"/v2.0/security-groups":      `{"security_group":{"name":"one more"}}`,
		"/v2.0/security-group-rules": `{"security_group_rule":{"security_group_id":"` + group + `","direction":"ingress","protocol":"udp"}}`,
	} {
		tables := append([]string{"security_group", "security_group_rule"}, growing...)
		storetest.ExpectFewReads(t, watch, "POST "+path, tables, func() {
			c := openOn(t, url, networkstore.Config{Quota: limits})
			defer c.store.Close()
			for range storetest.PlanRepeats {
				c.as("ann:crowded").must(409, "POST", path, body)
			}
		})
	}
}

// PostgreSQL knows that the DHCP agents serve many networks, and does not know how few agents there are: it
// analyzes a table by itself only after many changes of its rows.
func TestPlan_HeartbeatReadsNoNetworkWhileNoDHCPAgentIsDown(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, grown)
	openOn(t, url, networkstore.Config{}).store.Close()
	tables := []string{"network", "dhcp_binding"}
	storetest.FixPlans(t, url, tables...)
	storetest.ExpectFewReads(t, storetest.Connect(t, url), "heartbeat", tables, func() {
		c := openOn(t, url, networkstore.Config{})
		defer c.store.Close()
		for range storetest.PlanRepeats {
			c.heartbeat(network.DHCPAgent, "net-1")
		}
	})
}

// With a raised quota, a security group can have many rules. A bulk request must not read all of them for
// each of its rules.
func TestPlan_BulkOfSecurityGroupRulesReadsTheOthersAFewTimes(t *testing.T) {
	t.Parallel()
	const others, created = 300, 100
	url := storetest.URL(t)
	c := openOn(t, url, networkstore.Config{})
	web := c.as("ann:demo").group("web")
	c.store.Close()
	storetest.Exec(t, url, `
		insert into security_group_rule (id, group_id, project, description, direction, ethertype, protocol, port_min, port_max, remote_ip)
		select gen_random_uuid(), $1, 'demo', '', 'ingress', 'IPv4', 'tcp', n, n, ''
		from generate_series(1, $2::integer) n`, web, others)
	storetest.FixPlans(t, url)
	watch := storetest.Connect(t, url)
	const table = "security_group_rule"
	before := storetest.ReadsOfTables(t, watch, table)[table]

	c = openOn(t, url, networkstore.Config{Quota: network.Quota{network.QuotaSecurityRules: 10_000}}).as("ann:demo")
	var rules []string
	for n := range created {
		rules = append(rules, fmt.Sprintf(
			`{"security_group_id":%q,"direction":"ingress","protocol":"tcp","port_range_min":%d,"port_range_max":%[2]d}`, web, 1000+n))
	}
	c.must(201, "POST", "/v2.0/security-group-rules", `{"security_group_rules":[`+strings.Join(rules, ",")+`]}`)
	c.store.Close()

	const most = 10 * (others + created)
	if n := storetest.ReadsOfTables(t, watch, table)[table].Rows - before.Rows; n > most {
		t.Errorf("rows of %s that the creation of %d rules beside %d others reads: got %d, want at most %d",
			table, created, others, n, most)
	}
}
