package outbox_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/store/outbox"
	"berth/internal/store/storetest"
)

func TestMaintenance_HasTheAgeOfEachExpectedPart(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	expect := func(when string, want map[string]time.Duration) {
		t.Helper()
		parts, err := s.Outbox.Maintenance(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]time.Duration{}
		for _, p := range parts {
			got[p.Part] = time.Since(p.CompletedAt).Truncate(time.Hour)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: ages of the parts of the maintenance (-want +got):\n%s", when, d)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const sweep, controller, healing, hosts = outbox.SweepPart, outbox.ControllerPart, outbox.HealingPart, outbox.HostsPart
	expect("before the first round", map[string]time.Duration{sweep: 0, controller: 0, healing: 0})

	storetest.Exec(t, url, `update maintenance set completed_at = now() - interval '90 minutes'`)
	do(s.Outbox.CompleteMaintenance(t.Context(), sweep))
	do(s.Outbox.ExpectMaintenance(t.Context(), hosts, true))
	expect("after the sweep", map[string]time.Duration{sweep: 0, controller: time.Hour, healing: time.Hour, hosts: 0})

	storetest.Exec(t, url, `update maintenance set completed_at = now() - interval '150 minutes'`)
	do(s.Outbox.ExpectMaintenance(t.Context(), hosts, true))
	expect("two hours later", map[string]time.Duration{sweep: 2 * time.Hour, controller: 2 * time.Hour, healing: 2 * time.Hour, hosts: 2 * time.Hour})

	do(s.Outbox.ExpectMaintenance(t.Context(), hosts, false))
	expect("without the monitor", map[string]time.Duration{sweep: 2 * time.Hour, controller: 2 * time.Hour, healing: 2 * time.Hour})
}
