package server_test

import (
	"testing"
	"time"

	"berth/internal/lease"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// TestLeaseTakeover_FinishesStepsThatAnotherProcessHasBegun runs a process without the role relay, so that no
// workflow of the lease starts.
func TestLeaseTakeover_FinishesStepsThatAnotherProcessHasBegun(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api,temporal")
	servertest.AwaitReady(t, a)
	base := "http://" + a.Address() + "/reservation/v1/"
	var ignored map[string]any
	post(t, base+"devices",
		map[string]any{"name": "iot-1", "device_type": "container", "device_driver": "zun"}, &ignored)
	var created struct{ Lease struct{ ID string } }
	post(t, base+"leases", map[string]any{
		"name":         "lab",
		"start_date":   "now",
		"end_date":     time.Now().Add(time.Hour).UTC().Format("2006-01-02 15:04"),
		"reservations": []map[string]any{{"resource_type": "device", "min": 1, "max": 1}},
	}, &created)

	// BeginDueLeases is what a process does before the calls to Nova and Neutron. This process is killed
	// then: nobody finishes the step.
	started, _, err := a.Store().Lease.BeginDueLeases(t.Context(), false)
	if err != nil || len(started) != 1 || started[0].Status != lease.Starting {
		t.Fatalf("begin the start of the lease: got %+v, error %v; want one lease in STARTING", started, err)
	}
	// the time of the killed process is over
	storetest.Exec(t, a.DatabaseURL(), `update lease set batch_until = now()`)

	servertest.Await(t, "the lease is ACTIVE", func() bool {
		status := queryTexts(t, a.DatabaseURL(), `select status from lease`)
		return len(status) == 1 && status[0] == string(lease.Active)
	})
}
