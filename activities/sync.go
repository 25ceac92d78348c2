package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/internal/journal"
	"berth/internal/store"
)

// Positions of a run behind the types.
const (
	atSettling = "settling" // its entries are on their way
	atCanary   = "canary"   // the last of them
)

// syncPage is how many objects are compared, and at most recorded, at once.
const syncPage = 100

// syncStep compares one type and records what the controller lacks or has otherwise. Nothing is deleted there. The
// canary comes last, when all the rest is mirrored: it says that the controller has everything.
func (a *Activities) syncStep(ctx context.Context, r *journal.Run) (time.Duration, error) {
	switch r.Position {
	case atSettling:
		done, err := a.settled(ctx, r)
		if err == nil && done {
			r.Position = atCanary
		}
		if i := slices.IndexFunc(r.Progress, func(p journal.TypeProgress) bool { return p.Failed }); i >= 0 && done {
			r.State, r.Note = journal.RunFailed, r.Progress[i].Type+": "+r.Progress[i].Note
		}
		return pauseUnless(done), err
	case atCanary:
		return a.canaryStep(ctx, r)
	}
	return 0, a.compare(ctx, r, false, func(found []journal.Finding, since store.Mark) error {
		_, err := a.Store.Mend(ctx, r.ID, found, since, false)
		return err
	})
}

func pauseUnless(done bool) time.Duration {
	if done {
		return 0
	}
	return settlePause
}

// canaryStep puts the canary there and ends the run once it is.
func (a *Activities) canaryStep(ctx context.Context, r *journal.Run) (time.Duration, error) {
	since, err := a.Store.Now(ctx)
	if err != nil {
		return 0, err
	}
	there, err := a.canary(ctx)
	if err != nil {
		return 0, err
	}
	done, err := a.settled(ctx, r)
	if err != nil || !done {
		return settlePause, err
	}
	c := journal.Canary()
	moving, err := a.Store.Moving(ctx, c.Object.Type, []string{c.Object.ID}, since)
	if err != nil {
		return 0, err
	}
	if there || moving[c.Object.ID] {
		r.State = journal.RunDone
		return 0, nil
	}
	r.Note = "puts the canary network there"
	_, err = a.Store.Mend(ctx, r.ID, []journal.Finding{{Object: c.Object, Kind: journal.Missing}}, since, false)
	return settlePause, err
}

// auditStep compares one type and keeps what differs.
func (a *Activities) auditStep(ctx context.Context, r *journal.Run) (time.Duration, error) {
	if r.Position == atSettling {
		n := journal.TypeProgress{}
		for _, p := range r.Progress {
			n.Missing, n.Different, n.Extra = n.Missing+p.Missing, n.Different+p.Different, n.Extra+p.Extra
		}
		r.State = journal.RunDone
		r.Note = fmt.Sprintf("%d missing, %d different, %d extra", n.Missing, n.Different, n.Extra)
		return 0, nil
	}
	var all []journal.Finding
	typ := position(r)
	err := a.compare(ctx, r, true, func(found []journal.Finding, _ store.Mark) error {
		all = append(all, found...)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return 0, a.Store.SaveFindings(ctx, r.ID, typ, all)
}

// repairStep records entries for some findings of the plan, in their order, and then waits for them.
func (a *Activities) repairStep(ctx context.Context, r *journal.Run) (time.Duration, error) {
	if r.Position == atSettling {
		done, err := a.settled(ctx, r)
		if err == nil && done {
			r.State = journal.RunDone
		}
		return pauseUnless(done), err
	}
	plan, err := a.Store.Run(ctx, r.Plan)
	if err != nil {
		return 0, err
	}
	var after journal.Ref
	after.Type, after.ID, _ = strings.Cut(r.Position, "/")
	found, err := a.Store.Findings(ctx, r.Plan, after, syncPage)
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		r.Position = atSettling
		return 0, nil
	}
	n := slices.IndexFunc(found, func(f journal.Finding) bool { return f.Object.Type != found[0].Object.Type })
	if n >= 0 {
		found = found[:n]
	}
	since := store.Mark(plan.CreatedAt.UTC().Format(time.RFC3339Nano))
	last := found[len(found)-1].Object
	r.Position = last.Type + "/" + last.ID
	_, err = a.Store.Mend(ctx, r.ID, found, since, true)
	return 0, err
}

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

func (a *Activities) compareType(ctx context.Context, r *journal.Run, p *journal.TypeProgress, extras bool, act func([]journal.Finding, store.Mark) error) error {
	since, err := a.Store.Now(ctx)
	if err != nil {
		return err
	}
	has, known, err := a.listed(ctx, p.Type)
	if err != nil {
		return err
	}
	if !known {
		if p.Total > 0 {
			p.Note = "the controller has no objects of this type"
		}
		return nil
	}
	if p.Type == journal.Canary().Object.Type {
		delete(has, journal.Canary().Object.ID)
	}
	for after := uuid.Nil.String(); ; {
		page, err := a.Store.Shall(ctx, p.Type, after, syncPage)
		if err != nil {
			return err
		}
		var found []journal.Finding
		for _, c := range page {
			after = c.Object.ID
			found = append(found, findings(c, has[after])...)
			delete(has, after)
		}
		p.Checked += len(page)
		if err := a.handle(ctx, p, found, since, act); err != nil {
			return err
		}
		if len(page) < syncPage {
			break
		}
		r.Progress = with(r.Progress, *p)
		if *r, err = a.Store.SaveRun(ctx, *r); err != nil {
			return err
		}
	}
	if !extras {
		return nil
	}
	return a.handle(ctx, p, strays(p.Type, has), since, act)
}

// strays are findings of the objects that the controller has and nobody knows.
func strays(typ string, has map[string]json.RawMessage) []journal.Finding {
	var found []journal.Finding
	for _, id := range slices.Sorted(maps.Keys(has)) {
		found = append(found, journal.Finding{Object: journal.Ref{Type: typ, ID: id}, Kind: journal.Extra, Data: has[id]})
	}
	return found
}

// findings is what there is to say of one object: at most one thing.
func findings(c journal.Change, has json.RawMessage) []journal.Finding {
	if has == nil {
		return []journal.Finding{{Object: c.Object, Kind: journal.Missing, Data: c.Data}}
	}
	if differ := journal.Differences(c.Object.Type, c.Data, has); len(differ) > 0 {
		return []journal.Finding{{Object: c.Object, Kind: journal.Different, Attributes: differ, Data: c.Data}}
	}
	return nil
}

// handle counts findings and lets act have them, but for those that the journal is about to mend.
func (a *Activities) handle(ctx context.Context, p *journal.TypeProgress, found []journal.Finding, since store.Mark, act func([]journal.Finding, store.Mark) error) error {
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.Object.ID
	}
	moving, err := a.Store.Moving(ctx, p.Type, ids, since)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(f journal.Finding) bool { return moving[f.Object.ID] })
	for _, f := range found {
		switch f.Kind {
		case journal.Missing:
			p.Missing++
		case journal.Different:
			p.Different++
		default:
			p.Extra++
		}
	}
	if len(found) == 0 {
		return nil
	}
	return act(found, since)
}

// listed is what the controller has of a type, by ID; known is false if it has no such collection.
func (a *Activities) listed(ctx context.Context, typ string) (all map[string]json.RawMessage, known bool, err error) {
	var within []string
	if outer := journal.Within(typ); outer != "" {
		if within, err = a.every(ctx, outer); err != nil {
			return nil, false, err
		}
	}
	all = map[string]json.RawMessage{}
	for _, request := range journal.Collections(typ, within) {
		body, err := a.read(ctx, request)
		if err != nil {
			return nil, false, err
		}
		if body == nil {
			continue
		}
		some, err := journal.Listed(typ, body)
		if err != nil {
			return nil, false, odd("%s", err)
		}
		known = true
		maps.Copy(all, some)
	}
	return all, known || len(within) > 0, nil
}

// every lists the IDs of all objects of a type that the controller shall have.
func (a *Activities) every(ctx context.Context, typ string) ([]string, error) {
	var ids []string
	for after := uuid.Nil.String(); ; {
		page, err := a.Store.Shall(ctx, typ, after, syncPage)
		if err != nil {
			return nil, err
		}
		for _, c := range page {
			after = c.Object.ID
			ids = append(ids, after)
		}
		if len(page) < syncPage {
			return ids, nil
		}
	}
}
