// Package mirrorstore stores the runs that compare the SDN controller with the database: full syncs, audits,
// repairs and recoveries, with their findings. For the comparison, mirrorstore also reads the tables of
// networkstore, portstore and journalstore.
package mirrorstore

import (
	"time"

	"berth/internal/contract"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// Store reads and writes runs and findings.
type Store struct {
	db       *db.DB
	lockWait time.Duration // how long a run waits for each lock
}

// lockWait is short, because a run repairs or recovers the objects of all projects, one after the other: a
// project that keeps an object locked must not hold up those of the others. The run leaves a locked object,
// and returns to it later.
const lockWait = 900 * time.Millisecond

// New returns a store on the database.
func New(d *db.DB) *Store { return &Store{db: d, lockWait: lockWait} }

// Workflows contains the queries for the open runs, each of which must have a workflow.
var Workflows = []outbox.Source{
	openRunsSource(contract.FullSync, contract.KeyFullSync),
	openRunsSource(contract.Recovery, contract.KeyRecovery),
	openRunsSource(contract.Audit, contract.KeyAudit),
	openRunsSource(contract.Repair, contract.KeyRepair),
}

func openRunsSource(workflow, kind string) outbox.Source {
	return outbox.Source{Workflow: workflow, Rows: `
		select 'odl/' || kind, kind || ' of the controller', jsonb_build_object('resource', kind)
		from mirror_run
		where kind = '` + kind + `' and finished_at is null`}
}
