package cloud

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/aggregates"
)

func TestAnswerIsSharedByThoseWhoCameBeforeIt(t *testing.T) {
	t.Parallel()
	l, release, n := &shared[map[string]aggregates.Aggregate]{}, make(chan struct{}), 0
	asked := make(chan struct{}, 2)
	list := func(ctx context.Context) (map[string]aggregates.Aggregate, error) { // one at a time
		n++
		name := strconv.Itoa(n)
		asked <- struct{}{}
		<-release
		return map[string]aggregates.Aggregate{name: {}}, ctx.Err()
	}
	type answered struct {
		all map[string]aggregates.Aggregate
		err error
	}
	ask := func(ctx context.Context) <-chan answered {
		c := make(chan answered, 1)
		go func() {
			all, err := l.ask(ctx, list)
			c <- answered{all, err}
		}()
		return c
	}
	waits := func() {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(time.Millisecond) {
			l.mu.Lock()
			is := l.next != nil
			l.mu.Unlock()
			switch {
			case is:
				return
			case time.Now().After(deadline):
				t.Fatal("nobody waits")
			}
		}
	}
	hurried, leave := context.WithCancel(t.Context())

	first := ask(t.Context())
	<-asked
	second := ask(hurried)
	waits()
	third := ask(t.Context())
	leave()
	if a := <-second; !errors.Is(a.err, context.Canceled) {
		t.Errorf("who leaves got %v", a)
	}
	close(release)

	if a := <-first; a.err != nil || len(a.all) != 1 {
		t.Errorf("the first got %v", a)
	} else if _, ok := a.all["1"]; !ok {
		t.Errorf("the first got %v", a.all)
	}
	if a := <-third; a.err != nil {
		t.Errorf("the third got %v", a.err)
	} else if _, old := a.all["1"]; old {
		t.Error("the third got an answer that was asked for before he came")
	}
}
