package networkstore

import (
	"context"

	"berth/internal/journal"
	"berth/internal/store/journalstore"
)

// recordChanges appends changes to the journal in the caller's transaction and enqueues the agent notifications. The
// caller holds the row locks of the changed objects, so that the entries of one object have the order of its changes.
//
// An entry depends on the unfinished entries of its object and, for a create or update, of its parents. A delete depends
// on the entries of the objects that name it as a parent. The newest entry of an object represents its older ones,
// because it depends on them. Entries that others depend on are share-locked: a concurrent completion either waits for
// this transaction and then wakes the new entry, or is visible here as finished.
func recordChanges(ctx context.Context, tx *transaction, changes ...journal.Change) error {
	if _, err := journalstore.Append(ctx, tx, changes); err != nil {
		return err
	}
	return enqueueChangeNotifications(ctx, tx, changes)
}
