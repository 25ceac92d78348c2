package portstore_test

import (
	"testing"
	"time"

	"berth/internal/network"
	"berth/internal/store/storetest"
)

// SetQuotaAboveUsage counts ports whose creation is still running, whether or not the project had a limit
// before.
func TestQuota_CheckedSetCountsRunningCreates(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]int64{"unlimited": network.Unlimited, "limited": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			fx := fixture{Store: storetest.Open(t, url), t: t}.withNetwork("10.0.0.0/24")
			if err := fx.Network.SetQuota(t.Context(), "p", network.Quota{network.QuotaPorts: before}); err != nil {
				t.Fatal(err)
			}
			holder, watcher := storetest.Connect(t, url), storetest.Connect(t, url)
			if _, err := holder.Exec(t.Context(), `begin; lock table port_address in share mode`); err != nil {
				t.Fatal(err)
			}
			isWaiting := func(on string) (yes bool) {
				if err := watcher.QueryRow(t.Context(), `
					select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and wait_event = $1)`, on).Scan(&yes); err != nil {
					t.Fatal(err)
				}
				return yes
			}
			made, limited := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := fx.Network.CreatePorts(t.Context(), []network.PortChange{fx.portDraft("")})
				made <- err
			}()
			for !isWaiting("relation") && len(made) == 0 {
				time.Sleep(time.Millisecond)
			}
			go func() {
				limited <- fx.Network.SetQuotaAboveUsage(t.Context(), "p", network.Quota{network.QuotaPorts: 0})
			}()
			for !isWaiting("advisory") && len(limited) == 0 {
				time.Sleep(time.Millisecond)
			}
			if _, err := holder.Exec(t.Context(), `rollback`); err != nil {
				t.Fatal(err)
			}

			if err := <-made; err != nil {
				t.Fatal(err)
			}
			if err := <-limited; faultKind(err) != network.QuotaTooLow {
				t.Errorf(
					"set a quota of 0 ports while the first port is created: got error %v, want QuotaTooLow",
					err,
				)
			}
			if err := fx.Network.SetQuotaAboveUsage(t.Context(), "p", network.Quota{network.QuotaPorts: 1}); err != nil {
				t.Error(err)
			}
			_, err := fx.Network.CreatePorts(t.Context(), []network.PortChange{fx.portDraft("")})
			if faultKind(err) != network.QuotaExceeded {
				t.Errorf("create a port above the quota: got error %v, want QuotaExceeded", err)
			}
		})
	}
}

// A DHCP agent that cannot create its port on one network synchronizes all its networks again and again. In
// Neutron, too, quotas are for the users of the API.
func TestDHCPPort_IsCreatedBeyondTheQuotaOfTheProject(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	if err := fx.Network.SetQuota(t.Context(), "p", network.Quota{network.QuotaPorts: 1}); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"net-1", "net-2"} {
		p, err := fx.Network.EnsureDHCPPort(t.Context(), network.PortChange{
			Network:     &fx.network.ID,
			Host:        &host,
			DeviceOwner: ptr(network.DeviceOwnerDHCP),
			DeviceID:    ptr("dhcp-" + host),
		}, true)
		if err != nil || p.Project != fx.network.Project {
			t.Errorf("port of the DHCP agent on %s: got project %q, error %v; want a port of project %q", host, p.Project, err, fx.network.Project)
		}
	}
	_, err := fx.Network.CreatePorts(t.Context(), []network.PortChange{fx.portDraft("")})
	if faultKind(err) != network.QuotaExceeded {
		t.Errorf("create another port: got error %v, want QuotaExceeded, because the ports of the agents count", err)
	}
}
