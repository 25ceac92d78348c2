package portstore_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth/internal/network"
	"berth/internal/store/storetest"
)

// A heartbeat that has another effect than to write the row of its agent runs the transaction for all
// heartbeats. Other tests check these effects.
func TestHeartbeat_IsOneStatementUnlessItHasAnotherEffect(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	q := storetest.NewQueryCounter(t, url)
	fx := fixture{Store: storetest.Open(t, q.URL), t: t}
	const cmp3, net2 = "cmp-3", "net-2"
	for _, host := range []string{cmp1, cmp2, cmp3} {
		fx.heartbeat(network.OVSAgent, host)
	}
	fx.heartbeat(network.DHCPAgent, net1)
	fx.heartbeat(network.DHCPAgent, net2)
	fx.heartbeat(network.L3Agent, net1)
	fx = fx.withNetwork("10.0.0.0/24")
	silence := func(host string) {
		storetest.Exec(t, url, `update agent set heartbeat_at = now() - interval '76 seconds' where host = $1`, host)
	}
	// The heartbeats are in the future, so that the agents stay alive however slow the machine is.
	wake := func() { storetest.Exec(t, url, `update agent set heartbeat_at = now() + interval '1 hour'`) }
	failBinding := func(host string) {
		silence(host)
		fx.createPort(host)
		wake()
	}
	for name, c := range map[string]struct {
		state   network.AgentState
		prepare func()
		result  string
		more    bool // the heartbeat needs more statements
	}{
		"L2 agent":                    {state: network.AgentState{Type: network.OVSAgent, Host: cmp1}, result: network.AgentAlive},
		"L2 agent with ports":         {state: network.AgentState{Type: network.OVSAgent, Host: cmp1}, prepare: func() { fx.createPort(cmp1) }, result: network.AgentAlive},
		"other configurations":        {state: network.AgentState{Type: network.OVSAgent, Host: cmp1, Configurations: json.RawMessage(`{"devices": 3}`)}, result: network.AgentAlive},
		"agent that has restarted":    {state: network.AgentState{Type: network.OVSAgent, Host: cmp1, ResourceVersions: map[string]string{"Port": "1.7"}}, result: network.AgentAlive},
		"agent of a type without use": {state: network.AgentState{Type: network.L3Agent, Host: net1}, result: network.AgentAlive},
		"DHCP agent":                  {state: network.AgentState{Type: network.DHCPAgent, Host: net1}, result: network.AgentAlive},
		"disabled agent with a failed binding": {
			state: network.AgentState{Type: network.OVSAgent, Host: cmp3},
			prepare: func() {
				failBinding(cmp3)
				fx.disableAgent(network.OVSAgent, cmp3)
			},
			result: network.AgentAlive,
		},
		"failed binding on another host": {
			state:   network.AgentState{Type: network.OVSAgent, Host: cmp1},
			prepare: func() { failBinding(cmp2) },
			result:  network.AgentAlive,
		},
		"new agent": {
			state:   network.AgentState{Type: network.MacvtapAgent, Host: cmp1},
			prepare: func() { storetest.Exec(t, url, `delete from agent where agent_type = $1`, network.MacvtapAgent) },
			result:  network.AgentNew,
			more:    true,
		},
		"revived L2 agent": {
			state:   network.AgentState{Type: network.OVSAgent, Host: cmp1},
			prepare: func() { silence(cmp1) },
			result:  network.AgentRevived,
		},
		"revived L2 agent with a failed binding on the host": {
			state:   network.AgentState{Type: network.OVSAgent, Host: cmp2},
			prepare: func() { failBinding(cmp2); silence(cmp2) },
			result:  network.AgentRevived,
			more:    true,
		},
		"revived DHCP agent": {
			state:   network.AgentState{Type: network.DHCPAgent, Host: net1},
			prepare: func() { silence(net1) },
			result:  network.AgentRevived,
			more:    true,
		},
		"failed binding on the host": {
			state:   network.AgentState{Type: network.OVSAgent, Host: cmp2},
			prepare: func() { failBinding(cmp2) },
			result:  network.AgentAlive,
			more:    true,
		},
		"DHCP agent while another one is down": {
			state:   network.AgentState{Type: network.DHCPAgent, Host: net1},
			prepare: func() { silence(net2) },
			result:  network.AgentAlive,
			more:    true,
		},
		"DHCP agent that does not report ports": {
			state:  network.AgentState{Type: network.DHCPAgent, Host: net1, Configurations: json.RawMessage(`{"notifies_port_ready": false}`)},
			result: network.AgentAlive,
			more:   true,
		},
	} {
		if c.state.Configurations == nil {
			c.state.Configurations = json.RawMessage(`{}`)
		}
		var statements, trips int64
		for i := range 3 { // a new connection has additional statements
			wake()
			if c.prepare != nil {
				c.prepare()
			}
			statementsBefore, tripsBefore := q.Statements(), q.RoundTrips()
			result, err := fx.Network.ReportState(t.Context(), c.state)
			if err != nil || result != c.result {
				t.Errorf("%s: got result %s, error %v; want %s", name, result, err, c.result)
			}
			s, r := q.Statements()-statementsBefore, q.RoundTrips()-tripsBefore
			if i == 0 || s < statements {
				statements, trips = s, r
			}
		}
		if one := statements == 1 && trips == 1; one == c.more {
			t.Errorf("%s: got %d statements in %d round trips, want more than one: %t", name, statements, trips, c.more)
		}
		t.Logf("%s: %d statements in %d round trips", name, statements, trips)
	}
}

func TestHeartbeat_OfAnAliveAgentWritesWhatItReports(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	fx := fixture{Store: storetest.Open(t, url), t: t}
	report := func(s network.AgentState, want string) network.Agent {
		s.Type, s.Host = network.OVSAgent, cmp1
		if result, err := fx.Network.ReportState(t.Context(), s); err != nil || result != want {
			t.Fatalf("got result %s, error %v; want %s", result, err, want)
		}
		a := fx.agentOfType(network.OVSAgent)
		storetest.Exec(t, url, `update agent set heartbeat_at = now() + interval '1 hour'`) // it stays alive
		return a
	}
	first := report(network.AgentState{
		Binary:           "b",
		Topic:            "t",
		Zone:             "az1",
		Configurations:   json.RawMessage(`{"devices": 1}`),
		ResourceVersions: map[string]string{"Port": "1.6"},
	}, network.AgentNew)

	got := report(network.AgentState{Binary: "b2", Topic: "t2", Configurations: json.RawMessage(`{"devices": 2}`)},
		network.AgentAlive)

	want := first
	want.Binary, want.Topic, want.Configurations = "b2", "t2", json.RawMessage(`{"devices": 2}`)
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(network.Agent{}, "HeartbeatAt", "Alive")); d != "" {
		t.Errorf("agent after its second heartbeat, without an availability zone (-want +got):\n%s", d)
	}
	if after := got.HeartbeatAt.Sub(first.HeartbeatAt); after <= 0 || after.Minutes() > 50 {
		t.Errorf("time of the second heartbeat: got %v after the first one, want the present time", after)
	}
	for _, want := range []string{"1.6", "1.7"} {
		if versions, err := fx.Network.ObjectVersions(t.Context()); err != nil ||
			!cmp.Equal(versions, map[string][]string{"Port": {want}}) {
			t.Errorf("versions that the agent accepts: got %v, error %v; want %s", versions, err, want)
		}
		report(network.AgentState{
			Configurations:   json.RawMessage(`{}`),
			ResourceVersions: map[string]string{"Port": "1.7"},
		}, network.AgentAlive)
	}
}

// Each version that counts is a message to all agents about each change.
func TestObjectVersions_OnlyEnabledAgentsThatAreAliveCount(t *testing.T) {
	t.Parallel()
	fx, makeStale := newAgingFixture(t)
	report := func(host, version string) {
		t.Helper()
		if _, err := fx.Network.ReportState(t.Context(), network.AgentState{
			Type:             network.OVSAgent,
			Host:             host,
			Configurations:   json.RawMessage(`{}`),
			ResourceVersions: map[string]string{"Port": version},
		}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want ...string) {
		t.Helper()
		versions, err := fx.Network.ObjectVersions(t.Context())
		if err != nil || !cmp.Equal(versions["Port"], want) {
			t.Errorf("versions %s: got %v, error %v; want %v", when, versions, err, want)
		}
	}
	report("silent", "1.1")
	makeStale()
	makeStale() // twice the time after which the agent counts as down
	check("of an agent, while no agent sends heartbeats", "1.1")
	report("disabled", "1.2")
	fx.disableAgent(network.OVSAgent, "disabled")
	report("alive", "1.3")
	check("of agents that are silent, disabled and alive", "1.3")
}

// TestPlan_HeartbeatReadsFewRows fails if a heartbeat reads the agents or the ports of all hosts. The
// statistics do not contain the entries that a scan of a whole index skips, so the test also checks which
// index a new agent uses to count the agents of its host.
func TestPlan_HeartbeatReadsFewRows(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, `
		set local session_replication_role = replica;
		insert into agent (id, agent_type, host, binary_name, topic, configurations, heartbeat_at)
		select gen_random_uuid(), kind, 'h' || n, 'b', 't', '{}', now() + interval '1 hour'
		from generate_series(1, 5000) n, unnest(array['Open vSwitch agent', 'Metadata agent']) kind;
		insert into port (id, network_id, project, name, description, admin_up, mac, device_id, device_owner, status, host, vnic, profile, vif, port_security)
		select gen_random_uuid(), gen_random_uuid(), 'p', '', '', true, 'fa:16:3e:00:00:00', '', 'compute:nova', 'ACTIVE', 'h' || n, 'normal', '{}', 'ovs', true
		from generate_series(1, 5000) n`)
	storetest.FixPlans(t, url)
	watch := storetest.Connect(t, url)
	for call, host := range map[string]func(i int) string{
		"heartbeat of an alive agent": func(i int) string { return fmt.Sprint("h", 1+i) },
		"heartbeat of a new agent":    func(i int) string { return fmt.Sprint("new-", i) },
	} {
		storetest.ExpectFewReads(t, watch, call, []string{"agent", "port"}, func() {
			s := storetest.Open(t, url)
			defer s.Close()
			fx := fixture{Store: s, t: t}
			for i := range storetest.PlanRepeats {
				fx.heartbeat(network.OVSAgent, host(i))
			}
		})
	}
	var scans int
	if err := watch.QueryRow(t.Context(), `select idx_scan from pg_stat_user_indexes where indexrelname = 'agent_host'`).Scan(&scans); err != nil ||
		scans < storetest.PlanRepeats {
		t.Errorf("scans of the index agent_host: got %d, error %v; want one for each of the %d new agents", scans, err, storetest.PlanRepeats)
	}
}

// A heartbeat must change no index, so that PostgreSQL can update the row of the agent in place (HOT), and
// the pages of the table must have room for the new version of the row. Whether PostgreSQL then updates a row
// in place also depends on the snapshots of other sessions.
func TestAgent_HeartbeatsChangeNoIndex(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	fx := fixture{Store: storetest.Open(t, url), t: t}
	watch := storetest.Connect(t, url)
	fx.heartbeat(network.OVSAgent, cmp1)
	var before json.RawMessage
	if err := watch.QueryRow(t.Context(), `
		update agent set heartbeat_at = heartbeat_at - interval '76 seconds' returning to_jsonb(agent)`).Scan(&before); err != nil {
		t.Fatal(err)
	}
	if _, err := fx.Network.ReportState(t.Context(), network.AgentState{
		Type:             network.OVSAgent,
		Host:             cmp1,
		Binary:           "new",
		Topic:            "new",
		Zone:             "new",
		Configurations:   json.RawMessage(`{"new": true}`),
		ResourceVersions: map[string]string{"Port": "1.7"},
	}); err != nil {
		t.Fatal(err)
	}

	var columns, indexes []string
	var room bool
	err := watch.QueryRow(t.Context(), `
		with changed as (
			select attnum, attname
			from agent, jsonb_each(to_jsonb(agent)) as after
			join jsonb_each($1) as before using (key)
			join pg_attribute on attrelid = 'agent'::regclass and attname = key
			where after.value <> before.value)
		select (select array_agg(attname::text order by attname) from changed),
			array(
				select distinct i.indexrelid::regclass::text
				from pg_index i
				left join pg_depend d on d.objid = i.indexrelid and d.refobjid = i.indrelid
				join changed on attnum = any(i.indkey) or attnum = d.refobjsubid
				where i.indrelid = 'agent'::regclass),
			exists (select from pg_class where oid = 'agent'::regclass and 'fillfactor=70' = any(reloptions))`, before).
		Scan(&columns, &indexes, &room)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"availability_zone", "binary_name", "configurations", "heartbeat_at", "started_at", "topic", "versions"}
	if d := cmp.Diff(want, columns); d != "" {
		t.Errorf("columns that a heartbeat changes (-want +got):\n%s", d)
	}
	if len(indexes) > 0 || !room {
		t.Errorf("indexes that a heartbeat changes: got %v, want none; room on the pages of the table: got %t", indexes, room)
	}
}
