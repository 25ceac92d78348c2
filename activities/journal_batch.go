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
	// carriedPerEntry is the maximum number of entries that are sent together with the entry that unblocked them.
	// Further entries are sent by their own workflows.
	carriedPerEntry = 8
	// minRemainingTime is the time below which an attempt sends no further entries together with its own.
	minRemainingTime = 2 * time.Second
)

// batch is the set of entries that one activity sends: one entry, and the entries that it unblocks (the carried
// entries). Sending a batch must take less time than journalstore.ClaimDuration.
type batch struct {
	sync.WaitGroup
	maxCarried int  // maximum number of entries that are sent together with the entry that unblocked them
	queued     bool // send no unblocked entries, because the backlog's order decides when unblocked entries are sent
	mu         sync.Mutex
	completed  []int64 // sequence numbers of the completed entries, except the first one
}

// free returns how many entries that an attempt unblocks may be claimed now.
func (b *batch) free(ctx context.Context) int {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < minRemainingTime {
		return 0
	}
	return b.maxCarried
}

// mirrorCarried sends an entry that another entry of the batch has unblocked. If the attempt fails, the entry's own
// workflow retries it.
func (a *Activities) mirrorCarried(ctx context.Context, e journal.Entry, b *batch) {
	e, o, err := a.attemptEntry(ctx, journal.ClaimResult{Entry: e}, b)
	if err != nil && activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("attempt at an unblocked entry failed; its own workflow retries", "entry", e.Seq, "error", err)
	}
	if err == nil && o.State() == journal.Completed {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.completed = append(b.completed, e.Seq)
	}
}

// sentence lists the completed entries of the batch, except the first one.
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
