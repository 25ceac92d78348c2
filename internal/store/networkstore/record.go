package networkstore

import (
	"context"

	"berth/internal/journal"
	"berth/internal/store/journalstore"
)

// record writes changes into the journal in the caller's transaction. The caller holds the rows of the changed
// objects, so that one object's entries are numbered in the order of its changes.
//
// An entry waits for the live entries of its object and, for a create or update, of its parents; a delete waits
// for those of the objects that name it as a parent. The newest one of each object stands for the older ones,
// which it waits for itself. Blockers are share-locked: a completion that comes meanwhile either waits for
// this transaction and then sees whom to wake, or is seen here as done.
func record(ctx context.Context, tx *transaction, changes ...journal.Change) error {
	if _, err := journalstore.Append(ctx, tx, changes); err != nil {
		return err
	}
	return announceChanges(ctx, tx, changes)
}
