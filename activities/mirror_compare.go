package activities

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	"github.com/google/uuid"

	"berth/internal/journal"
	"berth/internal/store/journalstore"
)

const (
	// comparePageSize is how many objects are compared in one query, and the maximum number of entries in one
	// transaction.
	comparePageSize = 100
	// comparePageBytes is the size of the controller's objects from which on a page is full.
	comparePageBytes = 16 << 20
	// maxListed is the maximum number of objects of one type that a run can list from the controller. Hashes
	// of their IDs are kept in memory, about 50 bytes each.
	maxListed = 5_000_000
)

// positionOf returns the object type that a run compares next.
func positionOf(r *journal.Run) string {
	if r.Position == "" {
		return journal.Types()[0]
	}
	return r.Position
}

// compare compares all objects of the run's current type at the controller with their rows, calls the
// function `handle` for the findings of each page, and moves the run to the next type that has objects. If
// `extras` is true, compare also finds objects of the controller that have no row.
func (a *Activities) compare(
	ctx context.Context,
	r *journal.Run,
	extras bool,
	handle func([]journal.Finding, journalstore.Timestamp) error,
) error {
	types := journal.Types()
	for i := slices.Index(types, positionOf(r)); ; i++ {
		if i == len(types) {
			r.Position = positionSettling
			return nil
		}
		p := journal.TypeProgress{Type: types[i]}
		r.Position = p.Type
		var err error
		if p.Total, err = a.Store.Mirror.CountObjects(ctx, p.Type); err != nil {
			return err
		}
		if p.Total == 0 && !extras {
			continue
		}
		err = a.compareType(ctx, r, &p, extras, handle)
		switch {
		case isObjectError(err):
			p.Note, p.Failed = err.Error(), true
		case err != nil:
			return err
		}
		r.Progress, r.Position = withProgress(r.Progress, p), positionSettling
		if i+1 < len(types) {
			r.Position = types[i+1]
		}
		return nil
	}
}

func withProgress(all []journal.TypeProgress, p journal.TypeProgress) []journal.TypeProgress {
	i := slices.IndexFunc(all, func(o journal.TypeProgress) bool { return o.Type == p.Type })
	if i < 0 {
		return append(all, p)
	}
	p.Recorded, p.Completed = all[i].Recorded, all[i].Completed
	all[i] = p
	return all
}

// comparison compares the objects of one type: first all objects that the controller lists, then all objects
// that have a row. Of the listed objects, only hashes of their IDs are kept in memory.
type comparison struct {
	*Activities
	run            *journal.Run
	objectType     string
	extras         bool
	handleFindings func([]journal.Finding, journalstore.Timestamp) error
	since          journalstore.Timestamp
	p              *journal.TypeProgress
	seen           map[fingerprint]struct{}
}

// fingerprint is a hash of an ID. It takes less memory than a long ID.
type fingerprint [16]byte

func fingerprintOf(id string) fingerprint {
	sum := sha256.Sum256([]byte(id))
	return fingerprint(sum[:16])
}

func (a *Activities) compareType(
	ctx context.Context,
	r *journal.Run,
	p *journal.TypeProgress,
	extras bool,
	handle func([]journal.Finding, journalstore.Timestamp) error,
) error {
	since, err := a.Store.Journal.Now(ctx)
	if err != nil {
		return err
	}
	c := comparison{
		Activities:     a,
		run:            r,
		objectType:     p.Type,
		extras:         extras,
		handleFindings: handle,
		since:          since,
		p:              p,
		seen:           map[fingerprint]struct{}{},
	}
	known, err := c.compareListed(ctx)
	switch {
	case err != nil:
		return err
	case known:
		return c.findMissing(ctx)
	case p.Total > 0:
		p.Note = "the controller has no objects of this type"
	}
	return nil
}

// compareListed compares all objects that the controller lists. It returns false if the controller has no
// such collection.
func (c *comparison) compareListed(ctx context.Context) (known bool, err error) {
	page, size := make(map[string]json.RawMessage, comparePageSize), 0
	known, err = c.listObjects(ctx, c.objectType, func(id string, raw json.RawMessage) error {
		if len(c.seen) >= maxListed {
			return objectError("the controller lists more than %d", maxListed)
		}
		c.seen[fingerprintOf(id)] = struct{}{}
		page[id] = raw
		if size += len(raw); len(page) < comparePageSize && size < comparePageBytes {
			return nil
		}
		err := c.comparePage(ctx, page)
		clear(page)
		size = 0
		return err
	})
	if err == nil && len(page) > 0 {
		err = c.comparePage(ctx, page)
	}
	return known, err
}

// comparePage compares one page of the controller's objects with their rows. The parameter `listed` contains
// the objects by ID.
func (c *comparison) comparePage(ctx context.Context, listed map[string]json.RawMessage) error {
	if c.objectType == journal.Canary().Object.Type {
		delete(listed, journal.Canary().Object.ID)
	}
	ids := slices.Sorted(maps.Keys(listed))
	rows, err := c.Store.Mirror.Objects(ctx, c.objectType, ids...)
	if err != nil {
		return err
	}
	var found []journal.Finding
	for _, k := range rows {
		if differ := journal.DifferingAttributes(c.objectType, k.Data, listed[k.Object.ID]); len(differ) > 0 {
			found = append(found, journal.Finding{
				Object:     k.Object,
				Kind:       journal.Different,
				Attributes: differ,
				Data:       k.Data,
			})
		}
		delete(listed, k.Object.ID)
	}
	for _, id := range ids {
		if raw, extra := listed[id]; extra && c.extras {
			found = append(found, journal.Finding{
				Object: journal.Ref{Type: c.objectType, ID: id},
				Kind:   journal.Extra,
				Data:   journal.StorableObject(c.objectType, id, raw),
			})
		}
	}
	return c.countFindings(ctx, found)
}

// findMissing finds the objects that have a row but that the controller has not listed.
func (c *comparison) findMissing(ctx context.Context) error {
	return c.eachExpected(ctx, c.objectType, func(page []journal.Change) error {
		var found []journal.Finding
		for _, k := range page {
			if _, listed := c.seen[fingerprintOf(k.Object.ID)]; !listed {
				found = append(found, journal.Finding{Object: k.Object, Kind: journal.Missing, Data: k.Data})
			}
		}
		c.p.Checked += len(page)
		if err := c.countFindings(ctx, found); err != nil || len(page) < comparePageSize {
			return err
		}
		c.run.Progress = withProgress(c.run.Progress, *c.p)
		saved, err := c.Store.Mirror.SaveRun(ctx, *c.run)
		if err == nil {
			*c.run = saved
		}
		return err
	})
}

// countFindings counts the findings and passes them to the function `handle`, except for objects that an open
// journal entry is about to change.
func (c *comparison) countFindings(ctx context.Context, found []journal.Finding) error {
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.Object.ID
	}
	moving, err := c.Store.Journal.ObjectsChanging(ctx, c.objectType, ids, c.since)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(f journal.Finding) bool { return moving[f.Object.ID] })
	for _, f := range found {
		switch f.Kind {
		case journal.Missing:
			c.p.Missing++
		case journal.Different:
			c.p.Different++
		default:
			c.p.Extra++
		}
	}
	if len(found) == 0 {
		return nil
	}
	return c.handleFindings(found, c.since)
}

// listObjects calls the function `each` for every object of a type in the controller. It returns false if the
// controller has no such collection.
func (a *Activities) listObjects(
	ctx context.Context,
	typ string,
	each func(id string, raw json.RawMessage) error,
) (known bool, err error) {
	var parentIDs []string
	if parent := journal.ParentType(typ); parent != "" {
		err := a.eachExpected(ctx, parent, func(page []journal.Change) error {
			for _, k := range page {
				parentIDs = append(parentIDs, k.Object.ID)
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	for _, request := range journal.ListRequests(typ, parentIDs) {
		exists, err := a.listCollection(ctx, request, journal.ListKey(typ), func(raw json.RawMessage) error {
			id, err := journal.ParseListedID(typ, raw)
			if err != nil {
				return objectError("%s", err)
			}
			return each(id, raw)
		})
		if err != nil {
			return false, err
		}
		known = known || exists
	}
	return known || len(parentIDs) > 0, nil
}

// eachExpected calls the function `each` for the objects of a type that have a row, page by page.
func (a *Activities) eachExpected(ctx context.Context, typ string, each func([]journal.Change) error) error {
	for after := uuid.Nil.String(); ; {
		page, err := a.Store.Mirror.ObjectsAfter(ctx, typ, after, comparePageSize)
		if err == nil {
			err = each(page)
		}
		if err != nil || len(page) < comparePageSize {
			return err
		}
		after = page[len(page)-1].Object.ID
	}
}
