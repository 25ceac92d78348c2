package auditstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/auditlog"
	"berth/internal/store/db"
)

const (
	sealBatch    = 1000            // records per transaction of the sealer
	sealInterval = time.Second     // pause of the sealer when no record waits
	trimInterval = 1 * time.Minute // between two checks of the retention
	trimBatch    = 5000            // records per transaction of the retention
)

// errLocked means that another process seals or deletes records now.
var errLocked = errors.New("another process has locked the chain of the audit log")

// lockChain locks the chain, so that only one process at a time changes the chain. If another process has the
// lock, it finds no row.
const lockChain = ` for no key update skip locked`

// Run seals waiting records and deletes records that are older than the retention, until ctx ends. A
// retention of 0 deletes no record.
func (s *Store) Run(ctx context.Context, retention time.Duration) {
	ctx = db.WithClass(ctx, "audit")
	var trimmed time.Time
	for {
		n, err := s.sealWaiting(ctx)
		if err == nil && retention > 0 && time.Since(trimmed) >= trimInterval {
			var deleted int64
			if deleted, err = s.Trim(ctx, retention); deleted < trimBatch {
				trimmed = time.Now()
			}
		}
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "sealing the audit log failed; the records wait", "error", err)
		}
		if err == nil && n == sealBatch {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(sealInterval):
		}
	}
}

// sealWaiting does the same as Seal, but locks the chain only if records wait.
func (s *Store) sealWaiting(ctx context.Context) (sealed int, err error) {
	var waits bool
	if err := s.db.QueryRow(ctx, `select exists (select from audit_pending)`).Scan(&waits); err != nil ||
		!waits {
		return 0, err
	}
	return s.Seal(ctx)
}

// Seal moves waiting records to the chain, and returns their number. If another process seals records now,
// Seal does nothing.
func (s *Store) Seal(ctx context.Context) (sealed int, err error) {
	err = s.db.InTx(ctx, func(tx db.Tx) error {
		head, _, err := ends(ctx, tx, lockChain)
		if err != nil {
			return err
		}
		waiting, err := takePending(ctx, tx)
		if err != nil || len(waiting) == 0 {
			return err
		}
		sealed = len(waiting)
		return appendRecords(ctx, tx, head, waiting)
	})
	switch {
	case errors.Is(err, errLocked):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("seal audit records: %w", err)
	default:
		return sealed, nil
	}
}

type pending struct {
	id     int64
	record string
}

// takePending deletes at most sealBatch waiting records and returns them in the order of their IDs.
func takePending(ctx context.Context, tx db.Tx) ([]pending, error) {
	waiting, err := db.QueryAll(ctx, tx, func(row pgx.CollectableRow) (p pending, err error) {
		err = row.Scan(&p.id, &p.record)
		return p, err
	}, `
		delete from audit_pending
		where ctid = any (array(select ctid from audit_pending limit $1))
		returning id, record::text`, sealBatch)
	slices.SortFunc(waiting, func(a, b pending) int { return cmp.Compare(a.id, b.id) })
	return waiting, err
}

// appendRecords appends records to the chain after its head.
func appendRecords(ctx context.Context, tx db.Tx, head auditlog.Position, waiting []pending) error {
	n := len(waiting)
	sequences, texts, hashes := make([]int64, n), make([]string, n), make([][]byte, n)
	for i, p := range waiting {
		head = head.Next([]byte(p.record))
		hash := head.Hash
		sequences[i], texts[i], hashes[i] = head.Sequence, p.record, hash[:]
	}
	batch := &pgx.Batch{}
	batch.Queue(`
		insert into audit_record (sequence, record, hash)
		select sequence, record::json, hash
		from unnest($1::bigint[], $2::text[], $3::bytea[]) as new (sequence, record, hash)`, sequences, texts, hashes)
	batch.Queue(`update audit_chain set sequence = $1, hash = $2`, head.Sequence, head.Hash[:])
	return tx.SendBatch(ctx, batch).Close()
}

// Trim deletes the oldest records of the chain that are older than the retention, at most trimBatch, and
// returns their number. The chain then begins after its anchor, the newest deleted record.
func (s *Store) Trim(ctx context.Context, retention time.Duration) (deleted int64, err error) {
	err = s.db.InTx(ctx, func(tx db.Tx) error {
		if _, _, err := ends(ctx, tx, lockChain); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			with oldest as (
				select sequence, (record ->> 'at') collate "C" as at from audit_record order by sequence limit $2
			), kept as (
				select coalesce(min(sequence) filter (where at >= $1), max(sequence) + 1) as first
				from oldest
			), anchor as (
				update audit_chain
				set anchor_sequence = r.sequence, anchor_hash = r.hash
				from audit_record r, kept
				where r.sequence = kept.first - 1
			)
			delete from audit_record using kept where sequence < kept.first`, auditlog.FormatTime(time.Now().Add(-retention)), trimBatch)
		deleted = tag.RowsAffected()
		return err
	})
	switch {
	case errors.Is(err, errLocked):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("delete old audit records: %w", err)
	default:
		return deleted, nil
	}
}
