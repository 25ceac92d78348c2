package kills

import (
	"testing"

	"berth/internal/torture/harness"
)

// TestRandomFaults_NothingLostDoubledOutOfOrderOrStuck sends mixed requests through all interfaces of several
// processes of berth, while random faults hit the processes and the servers on which they depend. After the
// last fault, all work must end, and every write that berth has acknowledged must be in the rows. `make
// torture` runs this test for ten minutes. `make soak` runs this test for an hour, in which one process is
// killed each minute, and then checks that memory, connections, waiting rows, open executions and latency
// have not grown.
func TestRandomFaults_NothingLostDoubledOutOfOrderOrStuck(t *testing.T) {
	t.Parallel()
	o := harness.ReadRunOptions(t)
	timeline := o.DrawTimeline(t)
	d := harness.NewRandomDeployment(t, harness.CurrentPrograms(t), "api", "api", "relay,temporal", "relay,temporal", "rpc")
	stop := d.RunClients(o)

	faults := d.RunFaults(timeline)

	d.CheckAfterFaults(o, faults, stop)
}
