package activities

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	"github.com/google/uuid"

	"berth/internal/journal"
	"berth/internal/store"
)

const (
	// syncPage is how many objects are compared, and at most recorded, at once.
	syncPage = 100
	// maxListed is how many objects a controller may list of one type: their IDs are remembered, at some 50 bytes each.
	maxListed = 5_000_000
)

// position is the type that a run is to look at.
func position(r *journal.Run) string {
	if r.Position == "" {
		return journal.Types()[0]
	}
	return r.Position
}

// compare looks at all objects of the type at which the run is, hands what it finds to act, page by page, and moves the
// run on to the next type that has any. With extras, objects that the controller shall not have are looked for, too.
func (a *Activities) compare(ctx context.Context, r *journal.Run, extras bool, act func([]journal.Finding, store.Mark) error) error {
	types := journal.Types()
	for i := slices.Index(types, position(r)); ; i++ {
		if i == len(types) {
			r.Position = atSettling
			return nil
		}
		p := journal.TypeProgress{Type: types[i]}
		r.Position = p.Type
		var err error
		if p.Total, err = a.Store.Count(ctx, p.Type); err != nil {
			return err
		}
		if p.Total == 0 && !extras {
			continue
		}
		err = a.compareType(ctx, r, &p, extras, act)
		switch {
		case isOdd(err):
			p.Note, p.Failed = err.Error(), true
		case err != nil:
			return err
		}
		r.Progress, r.Position = with(r.Progress, p), atSettling
		if i+1 < len(types) {
			r.Position = types[i+1]
		}
		return nil
	}
}

func with(all []journal.TypeProgress, p journal.TypeProgress) []journal.TypeProgress {
	i := slices.IndexFunc(all, func(o journal.TypeProgress) bool { return o.Type == p.Type })
	if i < 0 {
		return append(all, p)
	}
	p.Recorded, p.Completed = all[i].Recorded, all[i].Completed
	all[i] = p
	return all
}

// comparison is the one of one type: first all that the controller has, as it lists it, then all that it shall have. What
// it has is not remembered, but for the IDs.
type comparison struct {
	*Activities
	run    *journal.Run
	typ    string
	extras bool
	act    func([]journal.Finding, store.Mark) error
	since  store.Mark
	p      *journal.TypeProgress
	seen   map[fingerprint]struct{}
}

// fingerprint stands for an ID of any length.
type fingerprint [16]byte

func fingerprintOf(id string) fingerprint {
	sum := sha256.Sum256([]byte(id))
	return fingerprint(sum[:16])
}

func (a *Activities) compareType(ctx context.Context, r *journal.Run, p *journal.TypeProgress, extras bool, act func([]journal.Finding, store.Mark) error) error {
	since, err := a.Store.Now(ctx)
	if err != nil {
		return err
	}
	c := comparison{Activities: a, run: r, typ: p.Type, extras: extras, act: act, since: since, p: p, seen: map[fingerprint]struct{}{}}
	known, err := c.has(ctx)
	switch {
	case err != nil:
		return err
	case known:
		return c.lacks(ctx)
	case p.Total > 0:
		p.Note = "the controller has no objects of this type"
	}
	return nil
}

// has looks at all that the controller has; known is false if it has no such collection.
func (c *comparison) has(ctx context.Context) (known bool, err error) {
	page := make(map[string]json.RawMessage, syncPage)
	known, err = c.listed(ctx, c.typ, func(id string, raw json.RawMessage) error {
		if len(c.seen) >= maxListed {
			return odd("the controller lists more than %d", maxListed)
		}
		c.seen[fingerprintOf(id)] = struct{}{}
		if page[id] = raw; len(page) < syncPage {
			return nil
		}
		err := c.judge(ctx, page)
		clear(page)
		return err
	})
	if err == nil && len(page) > 0 {
		err = c.judge(ctx, page)
	}
	return known, err
}

// judge compares some objects of the controller with what it shall have of them.
func (c *comparison) judge(ctx context.Context, has map[string]json.RawMessage) error {
	if c.typ == journal.Canary().Object.Type {
		delete(has, journal.Canary().Object.ID)
	}
	ids := slices.Sorted(maps.Keys(has))
	kept, err := c.Store.These(ctx, c.typ, ids...)
	if err != nil {
		return err
	}
	var found []journal.Finding
	for _, k := range kept {
		if differ := journal.Differences(c.typ, k.Data, has[k.Object.ID]); len(differ) > 0 {
			found = append(found, journal.Finding{Object: k.Object, Kind: journal.Different, Attributes: differ, Data: k.Data})
		}
		delete(has, k.Object.ID)
	}
	for _, id := range ids {
		if raw, stray := has[id]; stray && c.extras {
			found = append(found, journal.Finding{Object: journal.Ref{Type: c.typ, ID: id}, Kind: journal.Extra, Data: journal.Kept(c.typ, id, raw)})
		}
	}
	return c.handle(ctx, found)
}

// lacks looks for what the controller shall have and has not listed.
func (c *comparison) lacks(ctx context.Context) error {
	return c.every(ctx, c.typ, func(page []journal.Change) error {
		var found []journal.Finding
		for _, k := range page {
			if _, there := c.seen[fingerprintOf(k.Object.ID)]; !there {
				found = append(found, journal.Finding{Object: k.Object, Kind: journal.Missing, Data: k.Data})
			}
		}
		c.p.Checked += len(page)
		if err := c.handle(ctx, found); err != nil || len(page) < syncPage {
			return err
		}
		c.run.Progress = with(c.run.Progress, *c.p)
		saved, err := c.Store.SaveRun(ctx, *c.run)
		if err == nil {
			*c.run = saved
		}
		return err
	})
}

// handle counts findings and lets act have them, but for those that the journal is about to mend.
func (c *comparison) handle(ctx context.Context, found []journal.Finding) error {
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.Object.ID
	}
	moving, err := c.Store.Moving(ctx, c.typ, ids, c.since)
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
	return c.act(found, c.since)
}

// listed hands all that the controller has of a type to each, by ID; known is false if it has no such collection.
func (a *Activities) listed(ctx context.Context, typ string, each func(id string, raw json.RawMessage) error) (known bool, err error) {
	var within []string
	if outer := journal.Within(typ); outer != "" {
		err := a.every(ctx, outer, func(page []journal.Change) error {
			for _, k := range page {
				within = append(within, k.Object.ID)
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	for _, request := range journal.Collections(typ, within) {
		there, err := a.list(ctx, request, journal.ListKey(typ), func(raw json.RawMessage) error {
			id, err := journal.Listed(typ, raw)
			if err != nil {
				return odd("%s", err)
			}
			return each(id, raw)
		})
		if err != nil {
			return false, err
		}
		known = known || there
	}
	return known || len(within) > 0, nil
}

// every hands all objects of a type that the controller shall have to each, page by page.
func (a *Activities) every(ctx context.Context, typ string, each func([]journal.Change) error) error {
	for after := uuid.Nil.String(); ; {
		page, err := a.Store.Shall(ctx, typ, after, syncPage)
		if err == nil {
			err = each(page)
		}
		if err != nil || len(page) < syncPage {
			return err
		}
		after = page[len(page)-1].Object.ID
	}
}
