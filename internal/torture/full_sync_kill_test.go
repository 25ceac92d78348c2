package torture

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
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// The controller loses everything, and whoever is needed to bring it back is killed in the middle of it.
func TestFullSync_ContinuesAfterKill(t *testing.T) {
	t.Parallel()
	t.Run("worker", func(t *testing.T) {
		t.Parallel()
		s, _ := servertest.SharedDeployment(t)
		checkFullSyncContinues(s, func(victim *servertest.Worker) {
			victim.Kill()
			s.StartWorker("relay,temporal")
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		postgres := mortalPostgres(t)
		_, settings := servertest.NewNamespace(t)
		checkFullSyncContinues(servertest.NewDeployment(t, postgres.URL, settings...), func(*servertest.Worker) {
			if err := postgres.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("Temporal", func(t *testing.T) {
		t.Parallel()
		temporal, err := devstack.StartTemporal(t.Context(), devstack.TemporalOptions{Dir: filepath.Dir(servertest.DataFolder(t))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(temporal.Kill)
		dialled, err := client.DialContext(t.Context(), client.Options{HostPort: temporal.Address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
		if err != nil {
			t.Fatal(err)
		}
		defer dialled.Close()
		servertest.PauseSweep(t, dialled)
		checkFullSyncContinues(servertest.NewDeployment(t, storetest.URL(t), "TEMPORAL_ADDRESS="+temporal.Address), func(*servertest.Worker) {
			temporal.Kill()
			if err := temporal.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// checkFullSyncContinues lets a controller that lost everything get it back, through a crash when some of it is back.
func checkFullSyncContinues(s *servertest.Deployment, crash func(victim *servertest.Worker)) {
	s.Helper()
	api, victim := s.StartWorker("api"), s.StartWorker("relay,temporal")
	for i := range 4 {
		network := api.CreateNetwork(fmt.Sprint("net-", i))
		api.CreateSubnet(network)
		for range 3 {
			api.Must("POST", "/networking/v2.0/ports", servertest.Object{"port": servertest.Object{"network_id": network}})
		}
	}
	s.AwaitNone("what was there before is mirrored", servertest.UnfinishedEntries)
	if err := s.Controller.LoseAll(); err != nil {
		s.Fatal(err)
	}
	s.Controller.InjectFaults(odltest.Fault{Method: http.MethodPost, DelayMS: 50, Times: 1000})
	before := len(s.Controller.Requests())

	id := api.Must("POST", "/journal/v1/runs", servertest.Object{"kind": "full-sync"})["run"].(servertest.Object)["id"]
	s.Await("some of it is back", func() string {
		if len(s.Controller.Requests()) > before+8 {
			return ""
		}
		return "nothing is back"
	})
	crash(victim)

	s.Await("the full sync is done", func() string {
		_, answer, err := api.Do("GET", fmt.Sprintf("/journal/v1/runs/%v", id), nil)
		run, _ := answer["run"].(servertest.Object)
		if err == nil && run["state"] == "done" {
			return ""
		}
		return fmt.Sprint(run["sentence"], err)
	})
	if rec := s.Controller.Record("network", servertest.Canary); rec.Object == nil {
		s.Error("the canary is not back")
	}
	log := slices.DeleteFunc(s.Controller.Requests(), func(w seen) bool { return !w.Applied })
	if last := log[len(log)-1]; last.ID != servertest.Canary {
		s.Errorf("the canary came before the last: %+v", last)
	}
	s.AwaitMirrored()
}
