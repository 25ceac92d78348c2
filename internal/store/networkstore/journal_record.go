package networkstore

import (
	"context"

	"berth/internal/journal"
	"berth/internal/store/journalstore"
)

// RecordChanges appends changes to the journal in the caller's transaction and enqueues the agent
// notifications. The caller must hold the row locks of the changed objects, so that the journal entries of
// one object have the order of the object's changes.
//
// A journal entry depends on the unfinished entries of its object. The entry of a create or update also
// depends on the unfinished entries of the object's parents; the entry of a delete also depends on the
// entries of the objects that name the deleted object as a parent. A dependency on the newest entry of an
// object is enough, because the newest entry itself depends on the object's older entries. The SQL statement
// that inserts the entries takes a share lock on each entry that a new entry depends on. Therefore, a
// concurrent transaction that completes one of these entries either waits for this transaction and then wakes
// the workflow of the new entry, or has already committed, so that this transaction sees the entry as
// finished.
func RecordChanges(ctx context.Context, tx *Transaction, changes ...journal.Change) error {
	if _, err := journalstore.Append(ctx, tx, changes); err != nil {
		return err
	}
	return enqueueChangeNotifications(ctx, tx, changes)
}

// RecordWithReferences saves the object of a change and records the changes that follow from it.
func RecordWithReferences(ctx context.Context, tx *Transaction, c journal.Change) error {
	changes, err := journalstore.SaveObject(ctx, tx, c)
	if err != nil {
		return err
	}
	return RecordChanges(ctx, tx, changes...)
}
