// Package mirrorstore stores the runs that compare the SDN controller with the database: full syncs, audits,
// repairs and recoveries, with their findings. For the comparison, mirrorstore also reads the tables of
// networkstore, portstore and journalstore.
package mirrorstore

import (
	"berth/internal/contract"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// Store reads and writes runs and findings.
type Store struct{ db *db.DB }

// New returns a store on the database.
func New(d *db.DB) *Store { return &Store{d} }

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
