package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"berth/internal/devstack"
	"berth/internal/odl/odltest"
	"berth/internal/store/storetest"
)

// The controller loses everything, and whoever is needed to bring it back is killed in the middle of it.
func TestFullSyncGoesOnWhereAKillEndedIt(t *testing.T) {
	t.Parallel()
	t.Run("worker", func(t *testing.T) {
		t.Parallel()
		s, _ := sharedSite(t)
		s.resync(func(victim *child) {
			victim.kill()
			s.start("relay,temporal")
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		postgres := mortalPostgres(t)
		_, settings := namespace(t)
		newSite(t, postgres.URL, settings...).resync(func(*child) {
			if err := postgres.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("Temporal", func(t *testing.T) {
		t.Parallel()
		temporal, err := devstack.StartTemporal(t.Context(), devstack.TemporalOptions{Dir: filepath.Dir(devFolder(t))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(temporal.Kill)
		dialled, err := client.DialContext(t.Context(), client.Options{HostPort: temporal.Address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
		if err != nil {
			t.Fatal(err)
		}
		defer dialled.Close()
		unswept(t, dialled)
		newSite(t, storetest.URL(t), "TEMPORAL_ADDRESS="+temporal.Address).resync(func(*child) {
			temporal.Kill()
			if err := temporal.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// resync lets a controller that lost everything get it back, through a crash when some of it is back.
func (s *site) resync(crash func(victim *child)) {
	s.Helper()
	api, victim := s.start("api"), s.start("relay,temporal")
	for i := range 4 {
		network := api.network(fmt.Sprint("net-", i))
		api.subnet(network)
		for range 3 {
			api.must("POST", "/networking/v2.0/ports", object{"port": object{"network_id": network}})
		}
	}
	s.none("what was there before is mirrored", unfinished)
	if err := s.odl.LoseAll(); err != nil {
		s.Fatal(err)
	}
	s.odl.InjectFaults(odltest.Fault{Method: http.MethodPost, DelayMS: 50, Times: 1000})
	before := len(s.odl.Requests())

	id := api.must("POST", "/journal/v1/runs", object{"kind": "full-sync"})["run"].(object)["id"]
	s.until("some of it is back", func() string {
		if len(s.odl.Requests()) > before+8 {
			return ""
		}
		return "nothing is back"
	})
	crash(victim)

	s.until("the full sync is done", func() string {
		_, answer, err := api.do("GET", fmt.Sprintf("/journal/v1/runs/%v", id), nil)
		run, _ := answer["run"].(object)
		if err == nil && run["state"] == "done" {
			return ""
		}
		return fmt.Sprint(run["sentence"], err)
	})
	if rec := s.odl.Record("network", canary); rec.Object == nil {
		s.Error("the canary is not back")
	}
	log := slices.DeleteFunc(s.odl.Requests(), func(w seen) bool { return !w.Applied })
	if last := log[len(log)-1]; last.ID != canary {
		s.Errorf("the canary came before the last: %+v", last)
	}
	s.mirrored()
}
