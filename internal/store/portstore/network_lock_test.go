package portstore_test

import (
	"testing"

	"berth/internal/network"
	"berth/internal/store/storetest"
)

// Clients that write ports of a network without a pause do not keep a change of the network waiting: the
// change waits only for the writes that began before it.
func TestNetworkLock_ChangeTakesItsTurnAmongPorts(t *testing.T) {
	t.Parallel()
	fx, url := newLockFixture(t)
	first, second := fx.createPort(cmp1), fx.createPort(cmp1)
	rename := func(p network.Port) func() error {
		return func() error {
			_, err := fx.Network.UpdatePort(t.Context(), p.ID, network.PortChange{Name: ptr("new")}, nil)
			return err
		}
	}
	changeNetwork := func() error {
		_, err := fx.Network.UpdateNetwork(t.Context(), fx.network.ID, network.NetworkChange{Name: ptr("new")}, nil)
		return err
	}
	rival := storetest.NewRival(t, url)
	rival.Do(`begin`)
	rival.Do(lock("port", first.ID, ""))
	requests := []struct {
		name string
		do   func() error
	}{
		{"change of the first port, which another writer has locked", rename(first)},
		{"change of the network", changeNetwork},
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
