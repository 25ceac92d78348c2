package networkstore_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

// takeNotifications returns the unsent notifications of a network, each as its resource and event, and marks
// these notifications as sent.
func takeNotifications(t *testing.T, s *store.Store, id uuid.UUID) (all []string) {
	t.Helper()
	due, err := s.Notifications.Unsent(t.Context(), id, 100)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int64, len(due))
	for i, a := range due {
		all, ids[i] = append(all, a.Resource+" "+a.Event), a.ID
	}
	if err := s.Notifications.MarkSent(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	return all
}

func createNetwork(t *testing.T, s *store.Store) uuid.UUID {
	t.Helper()
	made, err := s.Network.CreateNetworks(t.Context(), []network.NetworkChange{{Project: new("p")}})
	if err != nil {
		t.Fatal(err)
	}
	return made[0].ID
}

func createSubnet(t *testing.T, s *store.Store, n uuid.UUID) uuid.UUID {
	t.Helper()
	made, err := s.Network.CreateSubnets(t.Context(), []network.SubnetChange{
		{Network: &n, Project: new("p"), CIDR: new(netip.MustParsePrefix("10.0.0.0/24"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return made[0].ID
}

// TestNotification_EnqueuedForEveryChange checks the order of notifications, and that none are enqueued if
// agents are not notified.
func TestNotification_EnqueuedForEveryChange(t *testing.T) {
	t.Parallel()
	for _, notifyAgents := range []bool{true, false} {
		s := storetest.New(t)
		if notifyAgents {
			s.Network = portstore.New(s.DB,
				portstore.Config{Network: networkstore.Config{NotifyAgents: true}})
		}
		want := func(id uuid.UUID, what string, want ...string) {
			t.Helper()
			if !notifyAgents {
				want = nil
			}
			if diff := cmp.Diff(want, takeNotifications(t, s, id)); diff != "" {
				t.Errorf("unsent notifications at the step %q (-want +got):\n%s", what, diff)
			}
		}
		n := createNetwork(t, s)
		want(n, "after a network was created", "network created")
		report := func(kind, host string) {
			if _, err := s.Network.ReportState(t.Context(), network.AgentState{Type: kind, Host: host, Configurations: []byte(`{}`)}); err != nil {
				t.Fatal(err)
			}
		}
		report(network.DHCPAgent, "net-1")
		report(network.OVSAgent, "cmp-1")
		subnet := createSubnet(t, s, n)
		want(n, "after a subnet was created", "hosting created", "subnet created")
		ports, err := s.Network.CreatePorts(t.Context(), []network.PortChange{
			{
				Network:     &n,
				Project:     new("p"),
				Host:        new("cmp-1"),
				DeviceOwner: new("compute:nova"),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		p := ports[0].ID
		want(n, "after a port was created", "port created")
		update := func(c network.PortChange) {
			if _, err := s.Network.UpdatePort(t.Context(), p, c, nil); err != nil {
				t.Fatal(err)
			}
		}
		update(network.PortChange{Name: new("web")})
		update(network.PortChange{Name: new("web")})
		update(network.PortChange{FixedIPs: &[]network.FixedIP{}})
		want(n, "after a port was updated", "port updated", "port readdressed")
		reports := map[uuid.UUID][]network.Report{p: {{Entity: network.L2, Host: "cmp-1"}}}
		if _, err := s.Network.ReportPorts(t.Context(), reports); err != nil {
			t.Fatal(err)
		}
		want(n, "after the port was wired", "port updated")
		if _, err := s.Network.UpdateSubnet(t.Context(), subnet, network.SubnetChange{DHCP: new(false)}, nil); err != nil {
			t.Fatal(err)
		}
		want(n, "after DHCP was disabled", "subnet updated")
		for _, err := range []error{s.Network.DeletePort(t.Context(), p, nil), s.Network.DeleteSubnet(t.Context(), subnet, nil), s.Network.DeleteNetwork(t.Context(), n, nil)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		want(n, "deleted", "port deleted", "subnet deleted", "hosting deleted", "network deleted")
	}
}

// TestNotification_Replay checks that recent notifications are replayed. Notifications that were sent too
// long ago, and notifications that were trimmed, must not be replayed.
func TestNotification_Replay(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	s.Network.Store = networkstore.New(s.DB, networkstore.Config{NotifyAgents: true})
	early, late := createNetwork(t, s), createNetwork(t, s)
	for _, n := range []uuid.UUID{early, late} {
		if got := takeNotifications(t, s, n); len(got) != 1 {
			t.Fatalf("notifications of a new network: got %v, want one", got)
		}
	}
	storetest.Exec(t, url, `delete from note`)
	storetest.Exec(
		t,
		url,
		`update agent_notification set sent_at = sent_at - interval '10 minutes' where network_id = $1`,
		early,
	)
	want := func(what string, within time.Duration, atEarly, atLate []string) {
		t.Helper()
		if err := s.Notifications.Replay(t.Context(), within); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([][]string{atEarly, atLate}, [][]string{takeNotifications(t, s, early), takeNotifications(t, s, late)}); diff != "" {
			t.Errorf("unsent notifications after the %s (-want +got):\n%s", what, diff)
		}
	}

	want("replay of the last minute", time.Minute, nil, []string{"network created"})
	want("replay of the last hour", time.Hour, []string{"network created"}, []string{"network created"})
	var notes int
	if err := storetest.Connect(t, url).QueryRow(t.Context(), `select count(*) from note where workflow = 'AgentNotifications'`).Scan(&notes); err != nil ||
		notes != 2 {
		t.Errorf(
			"nudged workflows after two replays: got %d, error %v; want one for each of the 2 networks",
			notes,
			err,
		)
	}
	storetest.Exec(
		t,
		url,
		`update agent_notification set sent_at = sent_at - interval '2 hours' where network_id = $1`,
		early,
	)
	if n, err := s.Notifications.Trim(t.Context(), 10); err != nil || n != 1 {
		t.Errorf("trim the notifications: got %d deleted, error %v; want 1", n, err)
	}
	want("replay of one day", 24*time.Hour, nil, []string{"network created"})
}

// An agent that is silent again and again causes one replay after another. Each of them repeats what the one
// before has sent, which may be lost, too, but nothing for longer than an hour, so that the replays do not
// grow without bound.
func TestNotification_ReplaysDoNotKeepANotificationAlive(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	s.Network.Store = networkstore.New(s.DB, networkstore.Config{NotifyAgents: true})
	n := createNetwork(t, s)
	takeNotifications(t, s, n)
	for _, c := range []struct {
		within time.Duration
		first  time.Duration // since the first sending; the last one was 80 seconds ago
		want   []string
	}{
		{151 * time.Second, 80 * time.Second, []string{"network created"}},
		{151 * time.Second, 240 * time.Second, []string{"network created"}},
		{75 * time.Second, 80 * time.Second, nil},
		{24 * time.Hour, 50 * time.Minute, []string{"network created"}},
		{151 * time.Second, 2 * time.Hour, nil}, // notifications are kept for an hour
	} {
		storetest.Exec(t, url, `
			update agent_notification
			set sent_at = clock_timestamp() - interval '80 s', first_sent_at = clock_timestamp() - $1::interval`, c.first)
		if err := s.Notifications.Replay(t.Context(), c.within); err != nil {
			t.Fatal(err)
		}
		if got := takeNotifications(t, s, n); !slices.Equal(got, c.want) {
			t.Errorf("replay of the last %s, %s after the first sending and 80 s after the last one: got %q, want %q",
				c.within, c.first, got, c.want)
		}
	}
}

// reviveFixture returns a store with a network whose only notification was sent 20 minutes ago.
func reviveFixture(t *testing.T) (s *store.Store, url string, n uuid.UUID) {
	t.Helper()
	url = storetest.URL(t)
	s = storetest.Open(t, url)
	s.Network = portstore.New(s.DB, portstore.Config{Network: networkstore.Config{NotifyAgents: true}})
	n = createNetwork(t, s)
	takeNotifications(t, s, n)
	storetest.Exec(t, url, `
		update agent_notification
		set sent_at = now() - interval '20 minutes', first_sent_at = now() - interval '20 minutes'`)
	return s, url, n
}

// reviveAgent reports the state of an agent that was silent for the given time.
func reviveAgent(t *testing.T, s *store.Store, url, host, silent string) error {
	t.Helper()
	report := func() (string, error) {
		return s.Network.ReportState(t.Context(),
			network.AgentState{Type: network.OVSAgent, Host: host, Configurations: []byte(`{}`)})
	}
	if _, err := report(); err != nil {
		return err
	}
	storetest.Exec(t, url, `update agent set heartbeat_at = now() - $2::interval where host = $1`, host, silent)
	result, err := report()
	if err == nil && result != network.AgentRevived {
		err = fmt.Errorf("heartbeat after a silence of %s: got result %s, want %s", silent, result, network.AgentRevived)
	}
	return err
}

// After an outage, many agents come back within a short time. Each of them needs what was sent while it was
// silent, and one replay is enough for all.
func TestNotification_ManyRevivedAgentsCauseOneReplay(t *testing.T) {
	t.Parallel()
	s, url, n := reviveFixture(t)
	wantReplay := func(what string, want bool, notifications ...string) {
		t.Helper()
		if done, err := s.Notifications.ReplayRequested(t.Context()); err != nil || done != want {
			t.Errorf("%s: got a replay: %t, error %v; want %t", what, done, err, want)
		}
		if d := cmp.Diff(notifications, takeNotifications(t, s, n)); d != "" {
			t.Errorf("unsent notifications %s (-want +got):\n%s", what, d)
		}
	}
	due := func(at string) {
		storetest.Exec(t, url, `update notification_replay set due_at = now() + $1::interval`, at)
	}
	wantReplay("before an agent has revived", false)
	var all sync.WaitGroup
	errs := make([]error, 40)
	for i := range errs {
		all.Go(func() {
			silent := "80 seconds"
			if i == len(errs)/2 {
				silent = "30 minutes"
			}
			errs[i] = reviveAgent(t, s, url, fmt.Sprint("cmp-", i), silent)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}

	due("1 hour")
	wantReplay("while further agents may revive", false)
	due("0")
	wantReplay("when the replay is due", true, "network created")
	wantReplay("after the replay", false)

	if err := reviveAgent(t, s, url, "cmp-late", "80 seconds"); err != nil {
		t.Fatal(err)
	}
	due("0")
	wantReplay("after another agent has revived", true, "network created")
}

// An agent that has restarted synchronizes all its state, and an agent that is alive has missed nothing.
func TestNotification_OnlyAgentsThatMissedSomethingCauseAReplay(t *testing.T) {
	t.Parallel()
	s, url, _ := reviveFixture(t)
	for name, tt := range map[string]struct {
		silent   string
		versions map[string]string
		kind     string
		result   string
		replays  int
	}{
		"alive":              {silent: "0", kind: network.OVSAgent, result: network.AgentAlive},
		"silent":             {silent: "80 seconds", kind: network.OVSAgent, result: network.AgentRevived, replays: 1},
		"restarted":          {silent: "80 seconds", versions: map[string]string{"Port": "1.7"}, kind: network.OVSAgent, result: network.AgentRevived},
		"silent DHCP agent":  {silent: "80 seconds", kind: network.DHCPAgent, result: network.AgentRevived},
		"silent for an hour": {silent: "1 hour", kind: network.MacvtapAgent, result: network.AgentRevived, replays: 1},
	} {
		state := network.AgentState{Type: tt.kind, Host: "cmp-1", Configurations: []byte(`{}`)}
		if _, err := s.Network.ReportState(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		storetest.Exec(t, url, `delete from notification_replay`)
		storetest.Exec(t, url, `update agent set heartbeat_at = now() - $1::interval`, tt.silent)
		state.ResourceVersions = tt.versions
		if result, err := s.Network.ReportState(t.Context(), state); err != nil || result != tt.result {
			t.Errorf("%s: got result %s, error %v; want %s", name, result, err, tt.result)
		}
		var replays int
		err := storetest.Connect(t, url).QueryRow(t.Context(), `
			select count(*) from notification_replay
			where since between now() - $1::interval - interval '80 seconds' and now() - $1::interval`, tt.silent).Scan(&replays)
		if err != nil || replays != tt.replays {
			t.Errorf("%s: got %d requested replays since its last heartbeat, error %v; want %d", name, replays, err, tt.replays)
		}
	}
}

// An agent that revives while a replay runs also needs what was sent between the begin of the replay and its
// heartbeat. Neither its heartbeat nor the replays of other processes wait for the replay.
func TestNotification_AgentThatRevivesDuringAReplayCausesAnother(t *testing.T) {
	t.Parallel()
	s, url, n := reviveFixture(t)
	if err := reviveAgent(t, s, url, "cmp-1", "30 minutes"); err != nil {
		t.Fatal(err)
	}

	storetest.Exec(t, url, `update notification_replay set due_at = now()`)
	replay, err := storetest.Connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replay.Exec(t.Context(), `delete from notification_replay`); err != nil {
		t.Fatal(err)
	}
	if done, err := s.Notifications.ReplayRequested(t.Context()); err != nil || done {
		t.Errorf("replay while another process runs it: got %t, error %v; want none", done, err)
	}
	if err := reviveAgent(t, s, url, "cmp-2", "30 minutes"); err != nil {
		t.Fatal(err)
	}
	if err := replay.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, url, `update notification_replay set due_at = now()`)
	done, err := s.Notifications.ReplayRequested(t.Context())
	if got := takeNotifications(t, s, n); err != nil || !done || len(got) != 1 {
		t.Errorf("replay for the agent that revived during a replay: got %t, error %v and the notifications %v, want one", done, err, got)
	}
}

// flipFixture returns a store with a port on the host cmp-1 that its agent has wired, and a function with
// which the agent reports the port lost and wired again. All notifications are sent.
func flipFixture(t *testing.T) (s *store.Store, n uuid.UUID, flip func()) {
	t.Helper()
	s = storetest.New(t)
	s.Network = portstore.New(s.DB, portstore.Config{Network: networkstore.Config{NotifyAgents: true}})
	n = createNetwork(t, s)
	state := network.AgentState{Type: network.OVSAgent, Host: "cmp-1", Configurations: []byte(`{}`)}
	if _, err := s.Network.ReportState(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	ports, err := s.Network.CreatePorts(t.Context(), []network.PortChange{
		{
			Network:     &n,
			Project:     new("p"),
			Host:        new("cmp-1"),
			DeviceOwner: new("compute:nova"),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	flip = func() {
		t.Helper()
		for _, event := range []string{network.ReportLost, network.ReportComplete} {
			reports := map[uuid.UUID][]network.Report{
				ports[0].ID: {{Entity: network.L2, Host: "cmp-1", Event: event}},
			}
			if _, err := s.Network.ReportPorts(t.Context(), reports); err != nil {
				t.Fatal(err)
			}
		}
	}
	flip()
	if got := takeNotifications(t, s, n); len(got) < 2 {
		t.Fatalf("notifications about the network and its port: got %q", got)
	}
	return s, n, flip
}

// The agents of a host can report the ports of their host up and down as often as they like.
func TestNotification_EqualUnsentOnesAreMerged(t *testing.T) {
	t.Parallel()
	s, n, flip := flipFixture(t)
	flip()
	first, err := s.Notifications.Unsent(t.Context(), n, 100)
	if err != nil || len(first) != 1 {
		t.Fatalf("unsent notifications after a port went down and up: got %v, error %v; want one", first, err)
	}
	later := createSubnet(t, s, n)
	flip()
	want := []string{"subnet created", "port updated"}
	if got := takeNotifications(t, s, n); !slices.Equal(got, want) {
		t.Errorf("unsent notifications after the port went down and up again: got %q, want %q", got, want)
	}

	if _, err := s.Network.UpdateSubnet(t.Context(), later, network.SubnetChange{Name: new("a")}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Network.UpdateSubnet(t.Context(), later, network.SubnetChange{Name: new("b")}, nil); err != nil {
		t.Fatal(err)
	}
	if got := takeNotifications(t, s, n); !slices.Equal(got, []string{"subnet updated"}) {
		t.Errorf("unsent notifications after two updates of a subnet: got %q, want one", got)
	}
}

// The process that sends a notification may have read the state before the last change.
func TestNotification_ChangeWhileOneIsSentIsSentAgain(t *testing.T) {
	t.Parallel()
	s, n, flip := flipFixture(t)
	flip()
	sending, err := s.Notifications.Claim(t.Context(), n, time.Hour, 100)
	if err != nil || len(sending) != 1 {
		t.Fatalf("claim the notifications: got %v, error %v; want one", sending, err)
	}
	for range 2 {
		flip()
	}
	both, err := s.Notifications.Unsent(t.Context(), n, 100)
	if err != nil || len(both) != 2 || !both[0].Claimed || both[1].Claimed {
		t.Errorf("unsent notifications while one is sent: got %+v, error %v; want this one, still claimed, and one more", both, err)
	}
	if err := s.Notifications.MarkSent(t.Context(), []int64{sending[0].ID}); err != nil {
		t.Fatal(err)
	}
	unsent, err := s.Notifications.Unsent(t.Context(), n, 100)
	if err != nil || len(unsent) != 1 || unsent[0].Claimed || unsent[0].Age < sending[0].Age {
		t.Errorf("notification about a change during the sending of one that was %s old: got %+v, error %v; want one, as old",
			sending[0].Age, unsent, err)
	}
}

// A request that merges a notification keeps it locked until its transaction ends. Only this notification is
// published again if the transaction stays open.
func TestMarkSent_LockedNotificationKeepsNoOtherUnsent(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	s.Network = portstore.New(s.DB, portstore.Config{Network: networkstore.Config{NotifyAgents: true}})
	n := createNetwork(t, s)
	createSubnet(t, s, n)
	due, err := s.Notifications.Unsent(t.Context(), n, 100)
	if err != nil || len(due) < 2 {
		t.Fatalf("notifications about a network and its subnet: got %+v, error %v; want at least two", due, err)
	}
	ids := make([]int64, len(due))
	for i, a := range due {
		ids[i] = a.ID
	}

	err = storetest.NewRival(t, url).RunAgainst(
		func() error { return s.Notifications.MarkSent(t.Context(), ids) },
		fmt.Sprintf(`delete from agent_notification where id = %d`, ids[0]),
		`select 1 / (count(*) = 0)::int from agent_notification where sent_at is null`)

	if err != nil {
		t.Error(err)
	}
}

func TestNotification_ReplayRepeatsEqualOnesOnce(t *testing.T) {
	t.Parallel()
	s, n, flip := flipFixture(t)
	for range 3 {
		flip()
		takeNotifications(t, s, n)
	}
	for range 2 {
		if err := s.Notifications.Replay(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for _, name := range takeNotifications(t, s, n) {
			counts[name]++
		}
		if counts["port updated"] != 1 || counts["port created"] != 1 {
			t.Errorf("replay of three equal notifications: got %v, want one", counts)
		}
	}
}

// A project that changes many security groups delays neither the notifications about those of other projects
// nor those about tunnels and agents.
func TestNotification_ProjectsTunnelsAndAgentsHaveQueuesOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	s.Network.Store = networkstore.New(s.DB, networkstore.Config{NotifyAgents: true})
	for _, project := range []string{"red", "blue"} {
		groups, err := s.Network.CreateSecurityGroups(t.Context(),
			[]network.SecurityGroupChange{{Project: &project, Name: new("web")}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Network.DeleteSecurityGroup(t.Context(), groups[0].ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	end := network.TunnelEndpoint{Type: "vxlan", Host: "cmp-1", IP: netip.MustParseAddr("192.0.2.1")}
	if _, err := s.Network.SyncTunnel(t.Context(), end, false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Network.RouterMAC(t.Context(), "cmp-1", func() string { return "fa:16:3f:00:00:01" }); err != nil {
		t.Fatal(err)
	}

	groups := []string{
		"security_group created",
		"security_group_rule created",
		"security_group_rule created",
		"security_group_rule deleted",
		"security_group_rule deleted",
		"security_group deleted",
	}
	for name, tt := range map[string]struct {
		queue uuid.UUID
		want  []string
	}{
		"security groups of red":  {network.NotificationQueue(network.ResourceSecurityGroup, "red"), groups},
		"security groups of blue": {network.NotificationQueue(network.ResourceSecurityGroup, "blue"), groups},
		"tunnels":                 {network.NotificationQueue(network.ResourceTunnel, ""), []string{"tunnel updated"}},
		"router MACs":             {network.NotificationQueue(network.ResourceDVRMAC, ""), []string{"router_mac created"}},
		"no network":              {uuid.Nil, nil},
	} {
		if d := cmp.Diff(tt.want, takeNotifications(t, s, tt.queue)); d != "" {
			t.Errorf("unsent notifications in the queue %q (-want +got):\n%s", name, d)
		}
	}
	red := contract.AgentNotificationsID(network.NotificationQueue(network.ResourceSecurityGroup, "red").String())
	projects, err := db.QueryAll(t.Context(), s.DB, pgx.RowTo[string],
		`select coalesce(attributes->>'project', '') from note where workflow_id = $1`, red)
	if err != nil || !slices.Equal(projects, []string{"red"}) {
		t.Errorf("project of the workflow for the security groups of red: got %v, error %v; want red", projects, err)
	}
}
