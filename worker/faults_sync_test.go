package main

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"berth/internal/odl/odltest"
)

// The controller loses everything, and the worker that brings it back is killed in the middle of it.
func TestFullSyncGoesOnWhereAKilledWorkerLeftOff(t *testing.T) {
	t.Parallel()
	s, _ := sharedSite(t)
	api, victim := s.start("api"), s.start("relay,temporal")
	for i := range 4 {
		network := api.network(fmt.Sprint("net-", i))
		api.subnet(network)
		for range 3 {
			api.must("POST", "/networking/v2.0/ports", object{"port": object{"network_id": network}})
		}
	}
	s.none("what was there before is mirrored", unfinished)
	if err := s.odl.Wipe(); err != nil {
		t.Fatal(err)
	}
	s.odl.Inject(odltest.Fault{Method: http.MethodPost, DelayMS: 50, Times: 1000})
	before := len(s.odl.Log())

	id := api.must("POST", "/journal/v1/runs", object{"kind": "full-sync"})["run"].(object)["id"]
	s.until("some of it is back", func() string {
		if len(s.odl.Log()) > before+8 {
			return ""
		}
		return "nothing is back"
	})
	victim.kill()
	s.start("relay,temporal")

	s.until("the full sync is done", func() string {
		run := api.must("GET", fmt.Sprintf("/journal/v1/runs/%v", id), nil)["run"].(object)
		if run["state"] == "done" {
			return ""
		}
		return fmt.Sprint(run["sentence"])
	})
	if rec := s.odl.Record("network", canary); rec.Object == nil {
		t.Error("the canary is not back")
	}
	log := slices.DeleteFunc(s.odl.Log(), func(w seen) bool { return !w.Applied })
	if last := log[len(log)-1]; last.ID != canary {
		t.Errorf("the canary came before the last: %+v", last)
	}
	s.mirrored()
}
