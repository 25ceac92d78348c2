package portstore_test

import (
	"fmt"
	"strings"
	"testing"

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
	made, err := fx.Network.CreateNetworks(t.Context(), []network.NetworkChange{
		{Project: ptr("owner"), Name: ptr("shared"), Shared: ptr(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return fx, made[0]
}

// A member who keeps a network of the own project locked does not hold the turn of a shared network
// meanwhile.
func TestNetworkLock_BulkTakesTheTurnsOfOtherProjectsLast(t *testing.T) {
	t.Parallel()
	url := withoutLockTimeout(t)
	fx, shared := newSharedFixture(t, url)
	onShared := func(c *network.PortChange) { c.Network = &shared.ID }
	drafts := []network.PortChange{fx.portDraft("", onShared), fx.portDraft("")}
	const turn = `hashtextextended('network %s', 0)`

	err := storetest.NewRival(t, url).RunAgainst(
		func() error {
			_, err := fx.Network.CreatePorts(t.Context(), drafts)
			return err
		},
		fmt.Sprintf(`select pg_advisory_xact_lock(`+turn+`)`, fx.network.ID),
		fmt.Sprintf(`select 1 / pg_try_advisory_xact_lock(`+turn+`)::int`, shared.ID),
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
