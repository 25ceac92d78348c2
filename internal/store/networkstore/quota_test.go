package networkstore_test

import (
	"testing"
	"time"

	"berth/internal/network"
	"berth/internal/store/storetest"
)

// Who limits a project to what it has counts what others are making for it at that moment, whether it was limited before or not.
func TestQuota_CheckedSetCountsRunningCreates(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]int64{"unlimited": network.Unlimited, "limited": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			g := ground{Store: storetest.Open(t, url), t: t}.laid("10.0.0.0/24")
			if err := g.Network.SetQuota(t.Context(), "p", network.Quota{network.QuotaPorts: before}); err != nil {
				t.Fatal(err)
			}
			holder, watcher := storetest.Connect(t, url), storetest.Connect(t, url)
			if _, err := holder.Exec(t.Context(), `begin; lock table port_address in share mode`); err != nil {
				t.Fatal(err)
			}
			stands := func(on string) (yes bool) {
				if err := watcher.QueryRow(t.Context(), `
					select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and wait_event = $1)`, on).Scan(&yes); err != nil {
					t.Fatal(err)
				}
				return yes
			}
			made, limited := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := g.Network.CreatePorts(t.Context(), []network.PortChange{g.draft("")})
				made <- err
			}()
			for !stands("relation") && len(made) == 0 {
				time.Sleep(time.Millisecond)
			}
			go func() {
				limited <- g.Network.SetQuotaAboveUsage(t.Context(), "p", network.Quota{network.QuotaPorts: 0})
			}()
			for !stands("advisory") && len(limited) == 0 {
				time.Sleep(time.Millisecond)
			}
			if _, err := holder.Exec(t.Context(), `rollback`); err != nil {
				t.Fatal(err)
			}

			if err := <-made; err != nil {
				t.Fatal(err)
			}
			if err := <-limited; kind(err) != network.QuotaTooLow {
				t.Errorf("a project with a port was limited to none: %v", err)
			}
			if err := g.Network.SetQuotaAboveUsage(t.Context(), "p", network.Quota{network.QuotaPorts: 1}); err != nil {
				t.Error(err)
			}
			if _, err := g.Network.CreatePorts(t.Context(), []network.PortChange{g.draft("")}); kind(err) != network.QuotaExceeded {
				t.Errorf("one more: %v", err)
			}
		})
	}
}
