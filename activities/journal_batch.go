package activities

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"berth/internal/journal"
)

const (
	// carriedPerEntry is the maximum number of unblocked entries that one entry carries. The workflows of the others send them.
	carriedPerEntry = 8
	// minRemainingTime: if an attempt has less time left than this, it sends no further entries together with its own.
	minRemainingTime = 2 * time.Second
)

// batch is the set of entries that one activity sends: an entry, and the entries that it unblocks (the carried entries). It
// must take less time than journalstore.ClaimDuration.
type batch struct {
	sync.WaitGroup
	maxCarried int  // maximum number of carried entries per entry
	queued     bool // carry no entries, because the backlog's order decides when unblocked entries are sent
	mu         sync.Mutex
	completed  []int64 // sequence numbers of the completed carried entries
}

// free returns how many entries may be carried now.
func (b *batch) free(ctx context.Context) int {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < minRemainingTime {
		return 0
	}
	return b.maxCarried
}

// mirrorCarried sends a carried entry. If it fails, the entry's own workflow retries.
func (a *Activities) mirrorCarried(ctx context.Context, e journal.Entry, b *batch) {
	e, o, err := a.attemptEntry(ctx, journal.ClaimResult{Entry: e}, b)
	if err != nil && activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("carried entry failed; its own workflow retries", "entry", e.Seq, "error", err)
	}
	if err == nil && o.State() == journal.Completed {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.completed = append(b.completed, e.Seq)
	}
}

// sentence lists the completed carried entries.
func (b *batch) sentence() string {
	if len(b.completed) == 0 {
		return ""
	}
	slices.Sort(b.completed)
	names := make([]string, len(b.completed))
	for i, seq := range b.completed {
		names[i] = strconv.FormatInt(seq, 10)
	}
	return fmt.Sprintf(" The same activity completed the entries that it unblocked: %s.", strings.Join(names, ", "))
}
