package activities

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store"
)

// heard is a cloud that remembers what it is told of, refuses some of that, and never answers to some.
type heard struct {
	Cloud
	mu              sync.Mutex
	told            []string
	refused, silent uuid.UUID
}

func (h *heard) Types() []string { return []string{lease.PhysicalHost} }

func (h *heard) hear(ctx context.Context, what string, c lease.Claim) error {
	h.mu.Lock()
	h.told = append(h.told, what+" "+c.Project)
	h.mu.Unlock()
	switch c.ID {
	case h.refused:
		return errors.New("no")
	case h.silent:
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (h *heard) Provide(ctx context.Context, c lease.Claim) (lease.Mark, error) {
	return lease.Mark{AggregateID: new(int64(7))}, h.hear(ctx, "provide", c)
}

func (h *heard) BeforeEnd(ctx context.Context, c lease.Claim) error {
	return h.hear(ctx, c.BeforeEnd, c)
}

func (h *heard) Withdraw(ctx context.Context, c lease.Claim) error {
	return h.hear(ctx, "withdraw", c)
}

func (h *heard) heard() []string {
	slices.Sort(h.told)
	return h.told
}

func begun(step lease.Step, name, typ string) store.Begun {
	r := lease.Reservation{ID: uuid.New()}
	r.Type, r.BeforeEnd = typ, "default"
	return store.Begun{Lease: lease.Lease{ID: uuid.New(), Name: name}, Step: step, Claims: []lease.Claim{{Reservation: r, Project: name}}}
}

// TestWhatTheCloudDoesNotDoInTimeIsLeftOut: each step is told as what it means there, and whoever fails or hangs is alone in it.
func TestWhatTheCloudDoesNotDoInTimeIsLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := []store.Begun{begun(lease.Start, "refused", lease.PhysicalHost), begun(lease.Start, "start", lease.PhysicalHost),
			begun(lease.Start, "silent", lease.PhysicalHost), begun(lease.BeforeEnd, "warning", lease.PhysicalHost),
			begun(lease.End, "end", lease.PhysicalHost), begun(lease.Start, "nothing there", lease.FloatingIP)}
		h := &heard{refused: all[0].Claims[0].ID, silent: all[2].Claims[0].ID}
		w := world{New(Options{Cloud: h, Snapshot: true})}

		well := map[string]int{}
		for _, b := range w.Bring(t.Context(), all) {
			well[b.Name] = len(b.Marks)
		}

		if d := cmp.Diff(map[string]int{"start": 1, "warning": 0, "end": 0, "nothing there": 0}, well); d != "" {
			t.Errorf("well, with so many marks: %s", d)
		}
		want := []string{"provide refused", "provide silent", "provide start", "snapshot warning", "withdraw end"}
		if d := cmp.Diff(want, h.heard()); d != "" {
			t.Errorf("what the cloud heard: %s", d)
		}
	})
}

func TestWhatIsTakenBackIsTakenBackWhateverBecomesOfTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := []store.Begun{begun(lease.Start, "silent", lease.PhysicalHost), begun(lease.Start, "well", lease.PhysicalHost)}
		all[0].Claims = append(all[0].Claims, begun(lease.Start, "second", lease.PhysicalHost).Claims...)
		all[1].Claims = append(begun(lease.Start, "refused", lease.PhysicalHost).Claims, all[1].Claims...)
		h := &heard{silent: all[0].Claims[0].ID, refused: all[1].Claims[0].ID}

		world{New(Options{Cloud: h})}.Retract(t.Context(), all)

		if d := cmp.Diff([]string{"withdraw refused", "withdraw second", "withdraw silent", "withdraw well"}, h.heard()); d != "" {
			t.Error(d)
		}
	})
}
