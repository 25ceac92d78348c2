package reconciler

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"berth/internal/store/reportstore"
)

// TestOverdueLog_WarnsOnceAboutEachObject is not parallel, because it replaces the default logger.
func TestOverdueLog_WarnsOnceAboutEachObject(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	object := func(name string) reportstore.OverdueObject {
		return reportstore.OverdueObject{
			Kind:   "port",
			Object: name,
			Reason: "it waits for L2",
			DueAt:  time.Unix(0, 0),
			For:    49 * time.Minute,
			Count:  2,
		}
	}
	var found []reportstore.OverdueObject
	l := newOverdueLog(func(context.Context) ([]reportstore.OverdueObject, error) { return found, nil })
	lines := func(objects ...reportstore.OverdueObject) int {
		t.Helper()
		log.Reset()
		found = objects
		if err := l.search(t.Context()); err != nil {
			t.Fatal(err)
		}
		return strings.Count(log.String(), "\n")
	}
	for i, step := range []struct {
		objects []reportstore.OverdueObject
		want    int
	}{
		{nil, 0},
		{[]reportstore.OverdueObject{object("port/a"), object("port/b")}, 2},
		{[]reportstore.OverdueObject{object("port/a"), object("port/b")}, 0},
		{[]reportstore.OverdueObject{object("port/b"), object("port/c")}, 1},
		{[]reportstore.OverdueObject{object("port/a"), object("port/b"), object("port/c")}, 1},
	} {
		if got := lines(step.objects...); got != step.want {
			t.Errorf("search %d: got %d lines, want %d:\n%s", i, got, step.want, log.String())
		}
	}
	const want = `level=WARN msg="object is overdue" kind=port object=port/a reason="it waits for L2" due_at=1970-01-01T00:00:00Z overdue=49m0s overdue_of_kind=2`
	if !strings.Contains(log.String(), want) {
		t.Errorf("log: got %s, want it to contain %s", log.String(), want)
	}
}
