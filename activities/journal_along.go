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
	// together is how many entries go along with the one that they waited for. The others are left to their workflows.
	together = 8
	// spare is the time that an attempt has left at least when it lets others go along.
	spare = 2 * time.Second
)

// train is a number of entries that are mirrored in one activity, because each waited for one before it. The activity
// is a brief one: store.Hold lasts longer.
type train struct {
	sync.WaitGroup
	places int  // how many may go along with each
	inLine bool // nobody: those that are set free are taken in their turn
	mu     sync.Mutex
	seqs   []int64 // completed
}

// room is how many entries may go along now.
func (t *train) room(ctx context.Context) int {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < spare {
		return 0
	}
	return t.places
}

// goAlong mirrors an entry that another one has set free. What does not succeed is left to the entry's own workflow.
func (a *Activities) goAlong(ctx context.Context, e journal.Entry, along *train) {
	e, o, err := a.attempt(ctx, journal.Take{Entry: e}, along)
	if err != nil && activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("An entry that went along is left to its own workflow", "entry", e.Seq, "error", err)
	}
	if err == nil && o.State() == journal.Completed {
		along.mu.Lock()
		defer along.mu.Unlock()
		along.seqs = append(along.seqs, e.Seq)
	}
}

// sentence names those that went along.
func (t *train) sentence() string {
	if len(t.seqs) == 0 {
		return ""
	}
	slices.Sort(t.seqs)
	names := make([]string, len(t.seqs))
	for i, seq := range t.seqs {
		names[i] = strconv.FormatInt(seq, 10)
	}
	return fmt.Sprintf(" With it went, having waited for it: %s.", strings.Join(names, ", "))
}
