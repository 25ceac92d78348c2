package server_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

var slotsAvailable = regexp.MustCompile(
	`(?m)^temporal_worker_task_slots_available\{.*task_queue="(ports|leases|journal)".*worker_type="(WorkflowWorker|ActivityWorker|LocalActivityWorker)".*\} (\d+)$`,
)

// TestWorkers_SlotsFollowTheDatabasePool reads the slots of an idle process from the metrics of Temporal's
// SDK.
func TestWorkers_SlotsFollowTheDatabasePool(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "temporal", "BERTH_DATABASE_URL="+storetest.URL(t)+"&pool_max_conns=3")
	servertest.AwaitReady(t, a)
	want := map[string]string{}
	for _, queue := range []string{"ports", "leases", "journal"} {
		for _, kind := range []string{"WorkflowWorker", "ActivityWorker", "LocalActivityWorker"} {
			want[queue+" "+kind] = "375"
		}
	}
	var d string
	defer func() {
		if d != "" {
			t.Logf("free slots (-want +got):\n%s", d)
		}
	}()
	servertest.Await(t, "each worker has 125 slots for each of three connections", func() bool {
		got := map[string]string{}
		for _, m := range slotsAvailable.FindAllStringSubmatch(getBody(t, a.URL()+"/metrics"), -1) {
			got[m[1]+" "+m[2]] = m[3]
		}
		d = cmp.Diff(want, got)
		return d == ""
	})
}
