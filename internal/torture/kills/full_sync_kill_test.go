package kills

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"berth/internal/odl/odltest"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
	"berth/internal/torture/harness"
)

// TestFullSync_ContinuesAfterKill deletes all objects at the controller and kills a worker, PostgreSQL or
// Temporal during the full sync that follows.
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
		postgres := harness.StartOwnPostgres(t)
		_, settings := servertest.NewNamespace(t)
		checkFullSyncContinues(
			servertest.NewDeployment(t, postgres.URL, settings...),
			func(*servertest.Worker) {
				if err := postgres.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
		)
	})
	t.Run("Temporal", func(t *testing.T) {
		t.Parallel()
		temporal, temporalClient := harness.StartOwnTemporal(t)
		servertest.PauseSweep(t, temporalClient)
		checkFullSyncContinues(
			servertest.NewDeployment(t, storetest.URL(t), "TEMPORAL_ADDRESS="+temporal.Address),
			func(*servertest.Worker) {
				temporal.Kill()
				if err := temporal.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
		)
	})
}

// checkFullSyncContinues deletes all objects at the controller, starts a full sync, causes a crash after
// eight requests, and checks that the full sync completes.
func checkFullSyncContinues(s *servertest.Deployment, crash func(victim *servertest.Worker)) {
	s.Helper()
	api, victim := s.StartWorker("api"), s.StartWorker("relay,temporal")
	for i := range 4 {
		network := api.CreateNetwork(fmt.Sprint("net-", i))
		api.CreateSubnet(network)
		for range 3 {
			api.Must("POST", "/networking/v2.0/ports",
				servertest.Object{"port": servertest.Object{"network_id": network}})
		}
	}
	s.AwaitNone("all earlier changes are mirrored", servertest.UnfinishedEntries)
	if err := s.Controller.LoseAll(); err != nil {
		s.Fatal(err)
	}
	s.Controller.InjectFaults(odltest.Fault{Method: http.MethodPost, DelayMS: 50, Times: 1000})
	before := len(s.Controller.Requests())

	id := startRun(api, "full-sync")
	s.Await("the full sync has sent eight requests", func() string {
		if len(s.Controller.Requests()) > before+8 {
			return ""
		}
		return "it has sent fewer"
	})
	crash(victim)

	awaitRun(s, api, "full-sync", id)
	if rec := s.Controller.Record("network", servertest.Canary); rec.Object == nil {
		s.Error("run a full sync: the controller has no check network, want one")
	}
	log := slices.DeleteFunc(s.Controller.Requests(), func(w controllerRequest) bool { return !w.Applied })
	if last := log[len(log)-1]; last.ID != servertest.Canary {
		s.Errorf(
			"run a full sync: the last applied request is %+v, want the creation of the check network",
			last,
		)
	}
	s.AwaitMirroredAndAudited(api)
}

// startRun starts a run of the given kind, for example `full-sync`, and returns the ID of the run.
func startRun(api *servertest.Worker, kind string) any {
	return api.Must("POST", "/journal/v1/runs", servertest.Object{"kind": kind})["run"].(servertest.Object)["id"]
}

// awaitRun waits until a run is done.
func awaitRun(s *servertest.Deployment, api *servertest.Worker, kind string, id any) {
	s.Helper()
	s.Await("the "+kind+" is done", func() string {
		_, answer, err := api.Do("GET", fmt.Sprintf("/journal/v1/runs/%v", id), nil)
		run, _ := answer["run"].(servertest.Object)
		if err == nil && run["state"] == "done" {
			return ""
		}
		return fmt.Sprint(run["sentence"], err)
	})
}
