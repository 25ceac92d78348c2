package networkstore

import (
	"berth/internal/network"
	"berth/internal/store/db"
)

// Audit records a change of an object for the audit log. The parameter `before` is nil for a new object,
// and `after` is nil for a deleted one.
func (t *Transaction) Audit(before, after any) {
	was, is := network.RevisionOf(before), network.RevisionOf(after)
	object := is
	if after == nil {
		object = was
	}
	t.Changed(db.Change{
		Type:   object.Type,
		ID:     object.ID,
		Before: was.Revision,
		After:  is.Revision,
	})
}
