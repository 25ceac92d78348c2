package harness

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"berth/internal/server/servertest"
)

// operateJournal uses the API of the journal as an operator does: pause and resume, retry of failed entries,
// and audits. The journal is not paused when operateJournal returns.
func operateJournal(ctx context.Context, c *randomClient) {
	for ctx.Err() == nil {
		switch n := c.random.IntN(4); n {
		case 0:
			if c.send(
				ctx, http.MethodPost, "/journal/v1/pause", servertest.Object{"reason": "torture"}, 0,
			).verdict == acknowledged {
				c.ledger.count("pause journal")
			}
			c.wait(ctx, 3*time.Second)
			c.resume(ctx)
		case 1:
			if c.send(
				ctx, http.MethodPost, "/journal/v1/runs",
				servertest.Object{"kind": "audit", "reason": "torture"}, 0,
			).verdict == acknowledged {
				c.ledger.count("start audit")
			}
		default:
			c.retryFailed(ctx)
		}
		c.wait(ctx, 8*time.Second)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	c.resume(end)
}

func (c *randomClient) resume(ctx context.Context) {
	for ctx.Err() == nil {
		if a := c.send(ctx, http.MethodPost, "/journal/v1/resume", servertest.Object{"reason": "torture"}, 0); a.verdict == acknowledged ||
			a.status == http.StatusConflict {
			return
		}
		pause(ctx, 300*time.Millisecond)
	}
}

func (c *randomClient) retryFailed(ctx context.Context) {
	a := c.send(ctx, http.MethodGet, "/journal/v1/entries?state=failed", nil, 0)
	entries, _ := a.body["entries"].([]any)
	for _, e := range entries {
		seq := fmt.Sprint(e.(servertest.Object)["seq"])
		if c.send(
			ctx, http.MethodPost, "/journal/v1/entries/"+seq+"/retry",
			servertest.Object{"reason": "torture"}, 0,
		).verdict == acknowledged {
			c.ledger.count("retry entry")
		}
	}
}

// sendForbiddenRequests sends requests without permission. berth must refuse all of them.
func sendForbiddenRequests(ctx context.Context, c *randomClient) {
	for ctx.Err() == nil {
		c.token = pick(c.random, []string{"eve:other", "-"})
		c.ledger.mu.Lock()
		keys := slices.Sorted(maps.Keys(c.ledger.promises))
		var target promise
		if len(keys) > 0 {
			target = *c.ledger.promises[pick(c.random, keys)]
		}
		c.ledger.mu.Unlock()
		if target.kind != "" {
			c.tryForbidden(ctx, &target)
		}
		c.wait(ctx, time.Second)
	}
}

func (c *randomClient) tryForbidden(ctx context.Context, target *promise) {
	object, body := path(target), any(servertest.Object{target.kind: servertest.Object{"name": "stolen"}})
	if target.kind == "lease" {
		object, body = leasePath(target), servertest.Object{"name": "stolen"}
	}
	attempt := pick(c.random, []struct {
		method, path string
		body         any
	}{
		{http.MethodDelete, object, nil},
		{http.MethodPut, object, body},
		{
			http.MethodPost,
			"/agent/v1/reports",
			servertest.Object{
				"reports": []servertest.Object{{"port": target.id, "entity": "L2", "host": "cmp-1"}},
			},
		},
		{http.MethodPost, "/journal/v1/pause", servertest.Object{"reason": "torture"}},
		{
			http.MethodPut,
			"/placement/allocations/" + uuid.NewString(),
			servertest.Object{
				"allocations":         servertest.Object{},
				"project_id":          "p",
				"user_id":             "u",
				"consumer_generation": nil,
			},
		},
	})
	switch a := c.send(ctx, attempt.method, attempt.path, attempt.body, 0); {
	case a.verdict == acknowledged:
		c.ledger.addFinding(
			notDenied, target.key(), "%s %s of a caller without permission (token %q) answered %d",
			attempt.method, attempt.path, c.token, a.status,
		)
	case a.status != 0 && a.verdict == refused:
		c.ledger.mu.Lock()
		c.ledger.denied++
		c.ledger.mu.Unlock()
	}
}
