package metricstore_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/metricstore"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

func TestBlockAges_CountBlocksByEntityAndAge(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	for entity, age := range map[string]string{
		"DHCP":     "0 s",
		"L2":       "61 s",
		"firewall": "700 s",
		"tunnel":   "90 s",
	} {
		storetest.Exec(
			t, url,
			`insert into block (object_id, entity, host, since) values ($1, $2, '', clock_timestamp() - $3::text::interval)`,
			uuid.New(), entity, age,
		)
	}
	got, err := s.Metrics.BlockAges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].Oldest = got[i].Oldest.Truncate(100 * time.Second)
	}
	want := []metricstore.BlockAges{{Entity: "DHCP", UnderMinute: 1}, {Entity: "L2", UnderTenMinutes: 1},
		{
			Entity:          "other",
			UnderTenMinutes: 1,
			Older:           1,
			Oldest:          700 * time.Second,
		}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("ages of the blocks (-want +got):\n%s", d)
	}
}

func TestCountAgents_ByState(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	for _, host := range []string{"up", "down", "disabled"} {
		if _, err := s.Network.ReportState(t.Context(), network.AgentState{Type: network.OVSAgent, Host: host, Configurations: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Exec(t, url,
		`update agent set heartbeat_at = heartbeat_at - interval '76 seconds' where host <> 'up'`)
	storetest.Exec(t, url, `update agent set admin_up = false where host = 'disabled'`)
	got, err := s.Metrics.CountAgents(t.Context())
	if d := cmp.Diff(metricstore.AgentCounts{Up: 1, Down: 1, Disabled: 1}, got); d != "" || err != nil {
		t.Errorf("agents by state: error %v, (-want +got):\n%s", err, d)
	}
}

func TestPending_CountsUndeliveredMessagesByKind(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.Exec(t, url, `insert into nova_event (port_id, server, name, status, tag, created_at)
		values (gen_random_uuid(), 's', 'network-vif-plugged', 'completed', 't', now() - interval '1 hour')`)
	storetest.Exec(t, url, `insert into agent_notification (network_id, kind, event, object_id, data, sent_at)
		select gen_random_uuid(), 'network', 'created', gen_random_uuid(), 'null', case when i > 2 then now() end from generate_series(1, 3) i`)
	storetest.Exec(t, url,
		`insert into lease_notification (lease_id, message_id, kind, lease) values (gen_random_uuid(), gen_random_uuid(), 'lease.create', '{}')`)
	got, err := s.Metrics.Pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].Oldest = got[i].Oldest.Truncate(time.Hour)
	}
	want := []metricstore.Pending{
		{Kind: "nova", Messages: 1, Oldest: time.Hour},
		{Kind: "agents", Messages: 2},
		{Kind: "lease_webhook", Messages: 1},
		{Kind: "provisioning_webhook"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("undelivered messages (-want +got):\n%s", d)
	}
}
