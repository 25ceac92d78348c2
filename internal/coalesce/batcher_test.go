package coalesce_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/coalesce"
	"berth/internal/panics"
)

type call = coalesce.Call[string, string]

// recorder is the batch operation of the test: the operation records its batch, then waits until the test
// releases the batch.
type recorder struct {
	mu      sync.Mutex
	batches [][]string
	release chan struct{}
}

func newRecorder() *recorder { return &recorder{release: make(chan struct{}, 100)} }

func (r *recorder) run(_ context.Context, batch []*call) {
	items := make([]string, len(batch))
	for i, c := range batch {
		items[i] = c.Item
	}
	r.mu.Lock()
	r.batches = append(r.batches, items)
	r.mu.Unlock()
	<-r.release
	for _, c := range batch {
		c.Finish("result of "+c.Item, nil)
	}
}

// do calls Batcher.Do in a goroutine. The channel that do returns receives the error of Do, or an error if
// the result of Do is wrong.
func do(ctx context.Context, b *coalesce.Batcher[string, string], item string) <-chan error {
	result := make(chan error, 1)
	go func() {
		got, err := b.Do(ctx, item)
		if want := "result of " + item; err == nil && got != want {
			err = fmt.Errorf("result of Do: got %q, want %q", got, want)
		}
		result <- err
	}()
	synctest.Wait()
	return result
}

func expect(t *testing.T, r *recorder, want ...[]string) {
	t.Helper()
	if d := cmp.Diff(want, r.batches); d != "" {
		t.Errorf("batches that ran (-want +got):\n%s", d)
	}
}

func TestBatcher_ItemsThatArriveDuringABatchFormTheNextOne(t *testing.T) {
	t.Parallel()
	for _, inline := range []bool{false, true} {
		t.Run(fmt.Sprintf("inline=%t", inline), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRecorder()
				b := coalesce.NewBatcher(coalesce.Config[string, string]{Run: r.run, Inline: inline})
				results := []<-chan error{
					do(t.Context(), b, "a"),
					do(t.Context(), b, "b"),
					do(t.Context(), b, "c"),
				}
				if n := b.Waiting(); n != 2 {
					t.Errorf("waiting calls while the first batch runs: got %d, want 2", n)
				}
				close(r.release)
				for _, result := range results {
					if err := <-result; err != nil {
						t.Error(err)
					}
				}
				if err := <-do(t.Context(), b, "d"); err != nil { // the queue is idle again
					t.Error(err)
				}
				expect(t, r, []string{"a"}, []string{"b", "c"}, []string{"d"})
			})
		})
	}
}

func TestBatcher_QueuesRunConcurrently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		byFirstLetter := func(item string) string { return item[:1] }
		b := coalesce.NewBatcher(coalesce.Config[string, string]{Run: r.run, Queue: byFirstLetter})
		results := []<-chan error{
			do(t.Context(), b, "a1"),
			do(t.Context(), b, "b1"),
			do(t.Context(), b, "a2"),
		}
		expect(t, r, []string{"a1"}, []string{"b1"})
		if n := b.Queues(); n != 2 {
			t.Errorf("queues while each runs a batch: got %d, want 2", n)
		}
		close(r.release)
		for _, result := range results {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if n := b.Queues(); n != 0 {
			t.Errorf("queues after all calls have returned: got %d, want none", n)
		}
	})
}

func TestBatcher_MaxSizeLimitsBatchesAndKeepsTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		b := coalesce.NewBatcher(coalesce.Config[string, string]{
			Run:     r.run,
			Size:    func(item string) int { return len(item) },
			MaxSize: 4,
		})
		var results []<-chan error
		for _, item := range []string{"first", "aa", "bb", "c", "a very long one", "d"} {
			results = append(results, do(t.Context(), b, item))
		}
		close(r.release)
		for _, result := range results {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
		expect(t, r, []string{"first"}, []string{"aa", "bb"}, []string{"c"},
			[]string{"a very long one"}, []string{"d"})
	})
}

func TestBatcher_ClientsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		b := coalesce.NewBatcher(coalesce.Config[string, string]{
			Run:     r.run,
			Client:  func(item string) string { return item[:1] },
			MaxSize: 2,
		})
		var results []<-chan error
		add := func(items ...string) {
			for _, item := range items {
				results = append(results, do(t.Context(), b, item))
			}
		}
		next := func() { // lets the batch that runs end, so that the next one begins
			r.release <- struct{}{}
			synctest.Wait()
		}
		add("a1", "a2", "a3", "a4", "a5", "a6", "b1") // the first batch is a1 alone
		next()
		next()
		add("c1", "c2", "b2") // while a3 and a4 run
		close(r.release)
		for _, result := range results {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
		expect(t, r, []string{"a1"}, []string{"b1", "a2"}, []string{"a3", "a4"}, []string{"c1", "b2"},
			[]string{"a5", "c2"}, []string{"a6"})
	})
}

// A client whose items are large gets its turn although the items of others, which arrive all the time, would
// fill each batch.
func TestBatcher_ClientsThatArriveLaterDelayNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		b := coalesce.NewBatcher(coalesce.Config[string, string]{
			Run:     r.run,
			Client:  func(item string) string { return item[:1] },
			Size:    func(item string) int { return len(item) },
			MaxSize: 4,
		})
		results := []<-chan error{
			do(t.Context(), b, "l1"),
			do(t.Context(), b, "large"),
			do(t.Context(), b, "b"),
		}
		r.release <- struct{}{}
		synctest.Wait() // until b runs
		results = append(results, do(t.Context(), b, "c"))
		close(r.release)
		for _, result := range results {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
		expect(t, r, []string{"l1"}, []string{"b"}, []string{"large"}, []string{"c"})
	})
}

func TestBatcher_ExclusiveItemsAreInDifferentBatchesAndKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		keys := map[string][]string{
			"x1": {"x"},
			"xy": {"x", "y"},
			"y1": {"y"},
			"z1": {"z"},
		}
		b := coalesce.NewBatcher(coalesce.Config[string, string]{
			Run:       r.run,
			Exclusive: func(item string) []string { return keys[item] },
		})
		var results []<-chan error
		// y1 must not overtake xy, which waits for x1
		for _, item := range []string{"first", "x1", "xy", "y1", "z1"} {
			results = append(results, do(t.Context(), b, item))
		}
		close(r.release)
		for _, result := range results {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
		expect(t, r, []string{"first"}, []string{"x1", "z1"}, []string{"xy"}, []string{"y1"})
	})
}

func TestBatcher_CancelledCallerLeavesTheQueueAndStopsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		var batchErr error
		run := func(ctx context.Context, batch []*call) {
			r.run(ctx, batch)
			if batch[0].Item == "other" {
				batchErr = ctx.Err()
			}
		}
		b := coalesce.NewBatcher(coalesce.Config[string, string]{Run: run})
		firstCtx, cancelFirst := context.WithCancel(t.Context())
		waitingCtx, cancelWaiting := context.WithCancel(t.Context())
		first := do(firstCtx, b, "first")
		cancelled := do(waitingCtx, b, "cancelled")
		other := do(t.Context(), b, "other")
		cancelFirst()
		cancelWaiting()
		for name, result := range map[string]<-chan error{"running": first, "waiting": cancelled} {
			if err := <-result; !errors.Is(err, context.Canceled) {
				t.Errorf(
					"call of the %s caller, whose context was cancelled: got error %v, want context.Canceled",
					name,
					err,
				)
			}
		}
		close(r.release)
		if err := <-other; err != nil {
			t.Error(err)
		}
		synctest.Wait() // until the last batch has ended
		expect(t, r, []string{"first"}, []string{"other"})
		if batchErr != nil {
			t.Errorf(
				"context of a batch after one caller's context was cancelled: got error %v, want none",
				batchErr,
			)
		}
	})
}

func TestBatcher_BatchEndsWhenAllItsCallersHaveGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var ended int
		run := func(ctx context.Context, batch []*call) {
			select {
			case <-release: // only for the first batch
			case <-ctx.Done():
				ended = len(batch)
			}
		}
		b := coalesce.NewBatcher(coalesce.Config[string, string]{Run: run})
		first := do(t.Context(), b, "first")
		oneCtx, cancelOne := context.WithCancel(t.Context())
		twoCtx, cancelTwo := context.WithCancel(t.Context())
		one, two := do(oneCtx, b, "one"), do(twoCtx, b, "two")
		release <- struct{}{}
		if err := <-first; err == nil {
			t.Error("call whose batch gave no result: got no error, want one")
		}
		synctest.Wait() // until the batch with the calls `one` and `two` runs
		cancelOne()
		if err := <-one; !errors.Is(err, context.Canceled) || !errors.Is(err, coalesce.ErrBegun) {
			t.Errorf(
				"call that was cancelled while its batch ran: got error %v, want context.Canceled and ErrBegun",
				err,
			)
		}
		if synctest.Wait(); ended != 0 {
			t.Error("the batch ended although one of its callers still waits")
		}
		cancelTwo()
		<-two
		if synctest.Wait(); ended != 2 {
			t.Errorf("batch whose callers have all given up: %d of its calls ended, want 2", ended)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		running := do(t.Context(), b, "running")
		waiting := do(cancelled, b, "waiting")
		cancel()
		if err := <-waiting; errors.Is(err, coalesce.ErrBegun) {
			t.Errorf(
				"call that was cancelled before its batch ran: got error %v, want it without ErrBegun",
				err,
			)
		}
		release <- struct{}{}
		<-running
	})
}

// The deadlines in this test are so short that many of them pass before the caller waits for the end of its
// batch, and after the batch began.
func TestBatcher_CallerGetsTheErrorOfItsOwnDeadline(t *testing.T) {
	t.Parallel()
	b := coalesce.NewBatcher(coalesce.Config[string, string]{Run: func(ctx context.Context, batch []*call) {
		<-ctx.Done()
		batch[0].Finish("", fmt.Errorf("write: %w", ctx.Err()))
	}})
	for range 5_000 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(20_000)))
		_, err := b.Do(ctx, "a")
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("call whose deadline has passed: got error %v, want context.DeadlineExceeded", err)
		}
	}
}

func TestBatcher_InlineCallHasItsCallersContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := coalesce.NewBatcher(coalesce.Config[string, string]{
		Inline:  true,
		Timeout: time.Nanosecond,
		Run: func(ctx context.Context, batch []*call) {
			_, limited := ctx.Deadline()
			cancel()
			batch[0].Finish(fmt.Sprint(limited), ctx.Err())
		},
	})
	if got, err := b.Do(ctx, "a"); got != "false" || !errors.Is(err, context.Canceled) {
		t.Errorf(
			"context of an inline call whose caller is cancelled: got deadline %s and error %v, want deadline false and error context.Canceled",
			got,
			err,
		)
	}
}

func TestBatcher_PanicFailsItsBatchOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		run := func(ctx context.Context, batch []*call) {
			r.run(ctx, batch[:1])
			if batch[0].Item == "bad" {
				panic("scripted")
			}
		}
		b := coalesce.NewBatcher(coalesce.Config[string, string]{Run: run})
		first := do(t.Context(), b, "first")
		bad := do(t.Context(), b, "bad")
		beside := do(t.Context(), b, "beside")
		r.release <- struct{}{}
		synctest.Wait()
		after := do(t.Context(), b, "after")
		close(r.release)
		for name, c := range map[string]struct {
			result <-chan error
			want   error
		}{
			"first":                     {first, nil},
			"finished before the panic": {bad, nil},
			"beside":                    {beside, panics.Err},
			"after":                     {after, nil},
		} {
			if err := <-c.result; !errors.Is(err, c.want) {
				t.Errorf("batcher call %q in the test of a panic: got error %v, want %v", name, err, c.want)
			}
		}
	})
}

func TestBatcher_CallWithoutResultFails(t *testing.T) {
	t.Parallel()
	for _, inline := range []bool{false, true} {
		finishNone := func(context.Context, []*call) {}
		b := coalesce.NewBatcher(coalesce.Config[string, string]{Inline: inline, Run: finishNone})
		if _, err := b.Do(t.Context(), "a"); err == nil {
			t.Errorf(
				"call to a batcher (inline=%t) whose function Run finishes no item: got no error, want one",
				inline,
			)
		}
	}
}

func TestBatcher_TimeoutLimitsABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := coalesce.NewBatcher(coalesce.Config[string, string]{
			Timeout: time.Second,
			Run: func(ctx context.Context, batch []*call) {
				<-ctx.Done()
				batch[0].Finish("", ctx.Err())
			},
		})
		if _, err := b.Do(t.Context(), "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf(
				"call of a batch that runs longer than Timeout: got error %v, want context.DeadlineExceeded",
				err,
			)
		}
	})
}

func TestBatcher_LingerEndsWhenAsManyCallsWaitOrTheTimeIsOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		returning int
		batches   int
		pause     time.Duration
	}{"all callers return": {2, 3, 0}, "one caller returns": {1, 3, time.Second}, "no caller returns": {0, 2, time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRecorder()
				close(r.release)
				gate := make(chan struct{})
				b := coalesce.NewBatcher(coalesce.Config[string, string]{
					Run: func(ctx context.Context, batch []*call) {
						<-gate
						r.run(ctx, batch)
					},
					Linger: func(int, time.Duration) time.Duration { return time.Second },
				})
				results := []<-chan error{
					do(t.Context(), b, "first"),
					do(t.Context(), b, "a"),
					do(t.Context(), b, "b"),
				}
				close(gate)
				for _, result := range results {
					if err := <-result; err != nil {
						t.Error(err)
					}
				}
				begin := time.Now()
				for range c.returning {
					results = append(results, do(t.Context(), b, "c"))
				}
				for _, result := range results[3:] {
					if err := <-result; err != nil {
						t.Error(err)
					}
				}
				if took := time.Since(begin); c.returning > 0 && took != c.pause {
					t.Errorf("time until the batch after a lingering queue ran: got %s, want %s",
						took, c.pause)
				}
				time.Sleep(time.Minute) // until the queue has stopped lingering
				if n := len(r.batches); n != c.batches {
					t.Errorf("number of batches that ran: got %d, want %d; batches: %v",
						n, c.batches, r.batches)
				}
			})
		})
	}
}

// In this test many callers use few queues: every call must get its own result once, and a queue must never
// run two batches at the same time.
func TestBatcher_ConcurrentCallersGetTheirOwnResults(t *testing.T) {
	t.Parallel()
	for _, inline := range []bool{false, true} {
		t.Run(fmt.Sprintf("inline=%t", inline), func(t *testing.T) {
			t.Parallel()
			var running [3]sync.Mutex
			b := coalesce.NewBatcher(coalesce.Config[int, int]{
				Inline:    inline,
				MaxSize:   7,
				Queue:     func(n int) string { return fmt.Sprint(n % 3) },
				Exclusive: func(n int) []string { return []string{fmt.Sprint(n / 40)} },
				Run: func(_ context.Context, batch []*coalesce.Call[int, int]) {
					queue := &running[batch[0].Item%3]
					if !queue.TryLock() {
						t.Error("two batches of one queue run at the same time, want one after the other")
						return
					}
					defer queue.Unlock()
					for _, c := range slices.Backward(batch) {
						c.Finish(-c.Item, nil)
					}
				},
			})
			var callers sync.WaitGroup
			for n := range 500 {
				callers.Go(func() {
					if got, err := b.Do(t.Context(), n); got != -n || err != nil {
						t.Errorf(
							"call with item %d: got result %d and error %v, want result %d and no error",
							n, got, err, -n,
						)
					}
				})
			}
			callers.Wait()
			if n := b.Waiting(); n != 0 {
				t.Errorf("waiting calls after all callers returned: got %d, want none", n)
			}
		})
	}
}
