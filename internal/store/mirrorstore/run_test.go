package mirrorstore_test

import (
	"slices"
	"testing"
	"time"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/storetest"
)

func TestTrimRuns_KeepsOpenRunsAndTheirPlans(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.Exec(t, url, `
		insert into mirror_run (id, kind, plan, actor, reason, state, finished_at)
		overriding system value
		values (1, 'audit', null, 'ann', 'old', 'done', now() - interval '2 days'),
			(2, 'audit', null, 'ann', 'old, but the plan of an open repair', 'done', now() - interval '2 days'),
			(3, 'audit', null, 'ann', 'new', 'done', now()),
			(4, 'repair', 2, 'ann', 'open', 'running', null),
			(5, 'full-sync', null, 'berth', 'old, but the last that is done', 'done', now() - interval '2 days'),
			(6, 'full-sync', null, 'berth', 'old and failed', 'failed', now() - interval '2 days')`)

	if err := s.Mirror.TrimRuns(t.Context(), 24*time.Hour); err != nil {
		t.Fatal(err)
	}

	runs, err := s.Mirror.Runs(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var left []int64
	for _, r := range runs {
		left = append(left, r.ID)
	}
	if want := []int64{5, 4, 3, 2}; !slices.Equal(left, want) {
		t.Errorf("runs that are left after the trim: got %v, want %v", left, want)
	}
}

func TestStartRun_DoesNotHideThatAnOpenRunMakesNoProgress(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	first, err := s.Mirror.StartRun(t.Context(),
		journal.Run{Kind: contract.KeyFullSync, Actor: "berth", Reason: "first"})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, url, `update mirror_run set updated_at = updated_at - interval '1 hour'`)

	again, err := s.Mirror.StartRun(t.Context(),
		journal.Run{Kind: contract.KeyFullSync, Actor: "berth", Reason: "second"})

	if want := first.UpdatedAt.Add(-time.Hour); err != nil || again.ID != first.ID ||
		again.Reason != "first" ||
		!again.UpdatedAt.Equal(want) {
		t.Errorf(
			"start a full sync while one is open: got %+v, error %v; want the open one, updated at %s",
			again, err, want,
		)
	}
}
