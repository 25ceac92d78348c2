package portstore_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// withoutLockTimeout returns the URL of a new database whose sessions wait for locks without a time limit of
// their own.
func withoutLockTimeout(t *testing.T) string {
	t.Helper()
	url, separator := storetest.URL(t), "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	return url + separator + "lock_timeout=0"
}

// newSharedFixture returns a fixture with a network of the project p, and a shared network of another
// project.
func newSharedFixture(t *testing.T, url string) (fx fixture, shared network.Network) {
	t.Helper()
	fx = fixture{Store: storetest.Open(t, url), t: t}.withNetwork("10.0.0.0/24")
	return fx, fx.createSharedNetwork()
}

// createSharedNetwork creates a shared network of another project than p.
func (fx fixture) createSharedNetwork() network.Network {
	fx.t.Helper()
	made, err := fx.Network.CreateNetworks(fx.t.Context(), []network.NetworkChange{
		{Project: ptr("owner"), Name: ptr("shared"), Shared: ptr(true)},
	})
	if err != nil {
		fx.t.Fatal(err)
	}
	return made[0]
}

// networkTurn is the SQL expression for the advisory lock of a network.
const networkTurn = `hashtextextended('network %s', 0)`

// A member who keeps a network of the own project locked does not hold the turn of a shared network
// meanwhile.
func TestNetworkLock_BulkTakesTheTurnsOfOtherProjectsLast(t *testing.T) {
	t.Parallel()
	url := withoutLockTimeout(t)
	fx, shared := newSharedFixture(t, url)
	onShared := func(c *network.PortChange) { c.Network = &shared.ID }
	drafts := []network.PortChange{fx.portDraft("", onShared), fx.portDraft("")}

	err := storetest.NewRival(t, url).RunAgainst(
		func() error {
			_, err := fx.Network.CreatePorts(t.Context(), drafts)
			return err
		},
		fmt.Sprintf(`select pg_advisory_xact_lock(`+networkTurn+`)`, fx.network.ID),
		fmt.Sprintf(`select 1 / pg_try_advisory_xact_lock(`+networkTurn+`)::int`, shared.ID),
		lock("network", shared.ID, "nowait"))

	if err != nil {
		t.Error(err)
	}
}

// A transaction that holds the turn of a network of another project waits only shortly for what its own
// project keeps locked.
func TestNetworkLock_TurnOfAnotherProjectIsHeldOnlyForAShortWait(t *testing.T) {
	t.Parallel()
	url := withoutLockTimeout(t)
	fx, shared := newSharedFixture(t, url)
	onShared := func(c *network.PortChange) { c.Network = &shared.ID }
	p := fx.createPort("", onShared)
	rival := storetest.NewRival(t, url)
	rival.Do(`begin`)
	rival.Do(lock("port", p.ID, ""))
	rival.Do(`select from security_group where project = 'p' for update`)

	_, err := fx.Network.CreatePorts(t.Context(), []network.PortChange{fx.portDraft("", onShared)})
	if !db.WasLocked(err) {
		t.Errorf("create a port with a locked security group: got error %v, want one for which WasLocked reports true", err)
	}
	_, err = fx.Network.UpdatePort(t.Context(), p.ID, network.PortChange{Name: ptr("new")}, nil)
	if !db.WasLocked(err) {
		t.Errorf("change a locked port: got error %v, want one for which WasLocked reports true", err)
	}
	rival.Do(`rollback`)
}

// A transaction that holds the turn of a network of another project does not wait for one lock after another,
// although none of these waits is long.
func TestNetworkLock_TurnOfAnotherProjectIsHeldOnlyForAFewWaits(t *testing.T) {
	t.Parallel()
	url := withoutLockTimeout(t)
	fx, shared := newSharedFixture(t, url)
	draft := network.SecurityGroupChange{Project: ptr("p"), Name: ptr("web")}
	groups, err := fx.Network.CreateSecurityGroups(t.Context(), slices.Repeat([]network.SecurityGroupChange{draft}, 8))
	if err != nil {
		t.Fatal(err)
	}
	var ids []uuid.UUID
	for _, g := range groups {
		ids = append(ids, g.ID)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	var rivals []storetest.Rival // each keeps one group locked
	for _, id := range ids {
		rival := storetest.NewRival(t, url)
		rival.Do(`begin`)
		rival.Do(lock("security_group", id, ""))
		rivals = append(rivals, rival)
	}
	port := fx.portDraft("", func(c *network.PortChange) { c.Network, c.SecurityGroups = &shared.ID, &ids })
	done := make(chan error, 1)
	go func() {
		_, err := fx.Network.CreatePorts(t.Context(), []network.PortChange{port})
		done <- err
	}()

	ended := false
	for i := 0; i < len(rivals) && !ended; i++ {
		if err, ended = rivals[i].AwaitWaiters(1, done); !ended {
			rivals[i].Do(`select pg_sleep(1)`) // half of the limit of one wait
			rivals[i].Do(`rollback`)
		}
	}
	if !ended {
		err = <-done
	}

	if !db.WasLocked(err) {
		t.Errorf("create a port with eight locked security groups: got error %v, want one for which WasLocked reports true", err)
	}
	rivals[0].AwaitNoWaiter()
}

// A transaction that needs the turns of several networks of another project does not hold one of them for as
// long as another one is taken.
func TestNetworkLock_BulkHoldsATurnOfAnotherProjectOnlyForAShortWaitForTheNext(t *testing.T) {
	t.Parallel()
	url := withoutLockTimeout(t)
	fx, shared := newSharedFixture(t, url)
	lower, higher := sortedByID(shared.ID, fx.createSharedNetwork().ID)
	drafts := []network.PortChange{
		fx.portDraft("", func(c *network.PortChange) { c.Network = &higher }),
		fx.portDraft("", func(c *network.PortChange) { c.Network = &lower }),
	}
	rival := storetest.NewRival(t, url)
	rival.Do(`begin`)
	rival.Do(fmt.Sprintf(`select pg_advisory_xact_lock(`+networkTurn+`)`, higher))

	_, err := fx.Network.CreatePorts(t.Context(), drafts)

	if !db.WasLocked(err) {
		t.Errorf("create ports while the turn of one network is taken: got error %v, want one for which WasLocked reports true", err)
	}
	rival.Do(`rollback`)
	if _, err := fx.Network.CreatePorts(t.Context(), drafts); err != nil {
		t.Errorf("create ports on two networks of another project: %v", err)
	}
}
