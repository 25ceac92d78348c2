package interop

import (
	"net/http"

	"berth/internal/odl/odltest"
	"berth/internal/server/servertest"
)

var entryRefused = alertScenario{
	name:   "the controller refuses an entry",
	alerts: map[string][]string{"BerthEntriesFailed": {`FAIL +journal +OpenDaylight has refused entry \d+ \(create network/\S+\), last error: .*400`}},
	fault: func(d *alertDeployment) func(map[string]string) {
		d.Controller.InjectFaults(
			odltest.Fault{Method: http.MethodPost, Type: "network", Status: http.StatusBadRequest})
		d.api.CreateNetwork("refused")
		return func(remedies map[string]string) {
			seq := d.Rows(`select seq::text from journal_entry where state = 'failed'`)
			if len(seq) != 1 {
				d.Fatalf("failed entries: got %v, want one", seq)
			}
			d.remedy(remedies["BerthEntriesFailed"], "SEQ", seq[0])
		}
	},
}

// objectLost removes a network at the controller. berth itself audits the controller again within a minute
// after a full sync, but the sweep, which starts that audit, is paused in tests.
var objectLost = alertScenario{
	name:   "the controller has lost an object",
	alerts: map[string][]string{"BerthControllerDiffers": {`audit .*missing`}},
	fault: func(d *alertDeployment) func(map[string]string) {
		d.AwaitNone("all journal entries are completed", servertest.UnfinishedEntries)
		network := d.Rows(`select id::text from network where name = 'blue'`)[0]
		if err := d.Controller.Alter("network", network, nil); err != nil {
			d.Fatal(err)
		}
		if found := d.Audit(d.api); len(found) == 0 {
			d.Error("audit of a controller that has lost a network: got no finding, want one")
		}
		return func(remedies map[string]string) {
			d.remedy(remedies["BerthControllerDiffers"])
			d.AwaitNone("the full sync has ended", `select kind from mirror_run where finished_at is null`)
			d.AwaitNone("all journal entries are completed", servertest.UnfinishedEntries)
			d.CheckAudit(d.api, "the full sync")
		}
	},
}

var journalPaused = alertScenario{
	name:   "an operator has paused the journal",
	alerts: map[string][]string{"BerthJournalPaused": {`maintenance-of-rack-4`}},
	fault: func(d *alertDeployment) func(map[string]string) {
		starter(d.Deployment, d.api.URL, "starter journal pause --reason maintenance-of-rack-4")
		return func(remedies map[string]string) {
			d.remedy(remedies["BerthJournalPaused"], "TEXT", "done")
		}
	},
}
