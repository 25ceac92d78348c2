package portstore_test

import (
	"strings"
	"sync"
	"testing"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// Clients that write ports of a network without a pause do not keep a change of the network, or the journal
// entry of a change, waiting: the change and the entry wait only for the writes that began before them.
func TestNetworkLock_ChangeAndItsEntryTakeTheirTurnsAmongPorts(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(fx fixture, entry journal.ClaimResult) error{
		"change of the network": func(fx fixture, _ journal.ClaimResult) error {
			_, err := fx.Network.UpdateNetwork(t.Context(), fx.network.ID, network.NetworkChange{Name: ptr("new")}, nil)
			return err
		},
		"claim of the entry of the network": func(fx fixture, entry journal.ClaimResult) error {
			_, err := fx.Journal.ClaimEntry(t.Context(), entry.Entry.Seq)
			return err
		},
		"outcome of the entry of the network": func(fx fixture, entry journal.ClaimResult) error {
			_, err := fx.Journal.SaveOutcome(
				t.Context(),
				entry.Entry.Seq,
				entry.Entry.Attempt,
				journal.Outcome{Kind: journal.OutcomeDone},
			)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkTurn(t, change)
		})
	}
}

// checkTurn checks that a change waits for the change of a port that began before it, and that the change of
// a port that began after it waits for it.
func checkTurn(t *testing.T, change func(fx fixture, entry journal.ClaimResult) error) {
	t.Helper()
	fx, url := newLockFixture(t)
	first, second := fx.createPort(cmp1), fx.createPort(cmp1)
	entries, err := fx.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Type: "network", Limit: 1})
	if err != nil || len(entries) != 1 {
		t.Fatalf("list the journal entries of the network: got %+v, error %v; want one", entries, err)
	}
	entry, err := fx.Journal.ClaimEntry(t.Context(), entries[0].Seq)
	if err != nil {
		t.Fatal(err)
	}
	// an old entry waits as long for its locks as a change of the network does
	storetest.Exec(t, url, `update journal_entry set created_at = created_at - interval '1 hour'`)
	rename := func(p network.Port) func() error {
		return func() error {
			_, err := fx.Network.UpdatePort(t.Context(), p.ID, network.PortChange{Name: ptr("new")}, nil)
			return err
		}
	}
	rival := storetest.NewRival(t, url)
	rival.Do(`begin`)
	rival.Do(lock("port", first.ID, ""))
	requests := []struct {
		name string
		do   func() error
	}{
		{"change of the first port, which another writer has locked", rename(first)},
		{"change that takes its turn", func() error { return change(fx, entry) }},
		{"later change of the second port", rename(second)},
	}
	done := make([]chan error, len(requests))
	for i, r := range requests {
		done[i] = make(chan error, 1)
		go func() { done[i] <- r.do() }()
		if err, ended := rival.AwaitWaiters(i+1, done[i]); ended {
			t.Fatalf("%s: got error %v and no wait, want it to wait for its turn", r.name, err)
		}
	}
	rival.Do(`commit`)
	for i, r := range requests {
		if err := <-done[i]; err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
	}
}

// The reports of a port whose project keeps it locked wait as transactions of the project, so that the ports
// of other projects get connections to the database.
func TestUpdatePortStatus_WaitsForALockedPortAsItsProject(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	fx := fixture{Store: storetest.Open(t, url+separator+"pool_max_conns=4"), t: t}.withNetwork("10.0.0.0/24")
	var locked [5]network.Port
	for i := range locked {
		locked[i] = fx.createPort("")
	}
	other := fx.createPort("", func(c *network.PortChange) { c.Project = ptr("q") })
	rival := storetest.NewRival(t, url)
	rival.Do(`begin`)
	rival.Do(`select from port where project = 'p' for update`)
	var waiting sync.WaitGroup
	for _, p := range locked {
		waiting.Go(func() {
			if _, err := fx.Network.UpdatePortStatus(t.Context(), p.ID, nil); err != nil {
				t.Error(err)
			}
		})
	}
	// of four connections, a client gets two, and a class without clients three
	watch := storetest.Connect(t, url)
	for locking := 0; locking+fx.DB.Pools()[1].Waiting < len(locked); {
		err := watch.QueryRow(t.Context(), `
			select (select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')
			from pg_sleep(0.005)`).Scan(&locking)
		if err != nil {
			t.Fatal(err)
		}
	}

	if _, err := fx.Network.UpdatePortStatus(t.Context(), other.ID, nil); err != nil {
		t.Errorf("update the status of a port of another project: %v", err)
	}
	rival.Do(`rollback`)
	waiting.Wait()
}
