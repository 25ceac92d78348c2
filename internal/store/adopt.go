package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/contract"
)

// Adopt leaves a note for every row that has a workflow if the Temporal namespace with that ID is another one
// than the rows were entrusted to: a server that was set up anew or restored from an old backup knows too little.
// It returns the number of notes. Of several processes that ask at once, one does the work.
func (s *Store) Adopt(ctx context.Context, namespace string) (int64, error) {
	var notes int64
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		notes = 0
		var known string
		err := tx.QueryRow(ctx, `select id from temporal_namespace where single for update`).Scan(&known)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if known == namespace {
			return nil
		}
		if _, err := tx.Exec(ctx, `
			insert into temporal_namespace (id)
			values ($1)
			on conflict (single) do update
			set id = excluded.id, adopted_at = now()`, namespace); err != nil {
			return err
		}
		notes, err = nudgeRows(ctx, tx, nil)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("adopt Temporal namespace %s: %w", namespace, err)
	}
	if notes > 0 {
		s.wake()
	}
	return notes, nil
}

// unlessEntrusted is true while the rows are not entrusted to another Temporal namespace than $3.
const unlessEntrusted = `not exists (select from temporal_namespace where id <> $3)`

// Entrusted tells whether the rows are entrusted to the Temporal namespace with that ID.
func (s *Store) Entrusted(ctx context.Context, namespace string) (bool, error) {
	var entrusted bool
	err := s.pool.QueryRow(ctx, `select exists (select from temporal_namespace where id = $1)`, namespace).Scan(&entrusted)
	if err != nil {
		return false, fmt.Errorf("whom the rows are entrusted to: %w", err)
	}
	return entrusted, nil
}

// everything lists the rows that a workflow looks after, in the shape of notes.
var everything = map[string]string{
	contract.Port: `
		select 'port/' || id, coalesce(nullif('port ' || name, 'port '), 'port ' || id),
			jsonb_build_object('resource', 'port', 'project', project, 'host', host, 'status', status)
		from port
		union all
		select distinct 'port/' || port_id, 'port ' || port_id, jsonb_build_object('resource', 'port', 'status', 'DELETED')
		from nova_event e
		where not exists (select from port p where p.id = e.port_id)`,
	contract.Lease: `
		select 'lease/' || id, name, jsonb_build_object('resource', 'lease', 'project', project_id, 'status', status)
		from lease
		where status <> 'TERMINATED' or delete_requested_at is not null`,
	contract.Webhook: `
		select distinct on (lease_id) 'webhook/' || lease_id, 'webhooks of lease ' || lease_id, jsonb_build_object('resource', 'webhook')
		from lease_notice`,
	contract.Pool: `
		select 'pool/' || service_name, 'host ' || service_name || ' in the pool', jsonb_build_object('resource', 'pool', 'host', service_name)
		from host_pooling`,
	contract.Announce: `
		select distinct 'announce/' || network_id, 'what agents are told of network ' || network_id, jsonb_build_object('resource', 'announcement')
		from announcement
		where told_at is null`,
	contract.JournalEntry: entryWorkflows,
	contract.FullSync:     openRuns(contract.KeyFullSync),
	contract.Recovery:     openRuns(contract.KeyRecovery),
	contract.Audit:        openRuns(contract.KeyAudit),
	contract.Repair:       openRuns(contract.KeyRepair),
}

// entryWorkflows lists journal entries that are not completed.
const entryWorkflows = `
		select 'journal/' || seq, operation || ' ' || object_type || ' ' || coalesce(nullif(name, ''), object_id),
			jsonb_build_object('resource', object_type, 'project', project)
		from journal_entry
		where finished_at is null`

func openRuns(kind string) string {
	return `
		select 'odl/' || kind, kind || ' of the controller', jsonb_build_object('resource', kind)
		from mirror_run
		where kind = '` + kind + `' and finished_at is null`
}

// Revive leaves a note for each of the workflow IDs whose row lives, and returns how many there are. The others
// belong to rows that are gone, or to none.
func (s *Store) Revive(ctx context.Context, workflowIDs []string) (int64, error) {
	var notes int64
	err := s.inTx(ctx, func(tx pgx.Tx) (err error) {
		notes, err = nudgeRows(ctx, tx, workflowIDs)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("revive workflows: %w", err)
	}
	if notes > 0 {
		s.wake()
	}
	return notes, nil
}

// nudgeRows leaves notes for the rows with those workflow IDs, or for every row if only is nil.
func nudgeRows(ctx context.Context, tx pgx.Tx, only []string) (int64, error) {
	batch := &pgx.Batch{}
	var notes int64
	count := func(tag pgconn.CommandTag) error {
		notes += tag.RowsAffected()
		return nil
	}
	for workflow, rows := range everything {
		batch.Queue(`
			insert into note (workflow_id, workflow, fresh, summary, attributes, due_at)
			select r.id, $1, false, r.summary, r.attributes, now()
			from (`+rows+`) as r (id, summary, attributes)
			where $2::text[] is null or r.id = any($2)
			order by r.id
			on conflict (workflow_id) do update
			set version = note.version + 1, fresh = false, due_at = least(note.due_at, excluded.due_at)`, workflow, only).Exec(count)
	}
	return notes, tx.SendBatch(ctx, batch).Close()
}
