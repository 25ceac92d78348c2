package console

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"berth/internal/store/db"
)

// Live renders pages again and again for the streams of the browsers that show them. All streams of a page
// share one rendering at a time, whatever their number is.
type Live struct {
	Interval time.Duration // time between two renderings of a page
	Timeout  time.Duration // maximum duration of one rendering
	Max      int           // maximum number of streams
	// Heartbeat is the time after which a stream without a change sends a comment, so that proxies keep the
	// connection, and validates the token of the operator again.
	Heartbeat time.Duration

	gate    chan struct{} // limits the number of renderings at the same time
	stopped chan struct{}
	once    sync.Once

	mutex   sync.Mutex
	streams int
	topics  map[string]*topic
}

// maxRenderings is the maximum number of pages that Live renders at the same time. Each rendering uses one of
// the reserved connections to the database.
const maxRenderings = 2

// NewLive returns a Live for at most 100 streams.
func NewLive() *Live {
	return &Live{
		Interval:  2 * time.Second,
		Timeout:   10 * time.Second,
		Max:       100,
		Heartbeat: 15 * time.Second,
		gate:      make(chan struct{}, maxRenderings),
		stopped:   make(chan struct{}),
		topics:    map[string]*topic{},
	}
}

// Stop ends all streams, for the shutdown of the process.
func (l *Live) Stop() { l.once.Do(func() { close(l.stopped) }) }

// topic is a page that streams show.
type topic struct {
	viewers map[chan struct{}]bool // each channel gets a value after a rendering with another result
	now     rendering
	end     context.CancelFunc // ends the renderings
}

// rendering is the result of the last rendering of a page.
type rendering struct {
	content []byte // HTML; nil: no rendering has succeeded yet
	hash    string // of the content
	problem string // why the last rendering failed; empty: it succeeded
}

// render renders the content of a page.
type render func(ctx context.Context) ([]byte, error)

// watch begins to render the page with the given key, unless another stream has begun it. The function
// `changed` returns a channel that gets a value after each change; the function `current` returns the last
// rendering. If there are too many streams, `ok` is false. Otherwise the caller must call leave when its
// stream ends.
func (l *Live) watch(
	key string,
	r render,
) (changed <-chan struct{}, current func() rendering, leave func(), ok bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.streams >= l.Max {
		return nil, nil, nil, false
	}
	l.streams++
	t := l.topics[key]
	if t == nil {
		ctx, end := context.WithCancel(context.Background())
		t = &topic{viewers: map[chan struct{}]bool{}, end: end}
		l.topics[key] = t
		go l.run(ctx, t, r)
	}
	viewer := make(chan struct{}, 1)
	t.viewers[viewer] = true
	if t.now.content != nil {
		viewer <- struct{}{}
	}
	current = func() rendering {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		return t.now
	}
	leave = func() {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.streams--
		delete(t.viewers, viewer)
		if len(t.viewers) == 0 {
			t.end()
			delete(l.topics, key)
		}
	}
	return viewer, current, leave, true
}

// run renders the page of a topic until ctx ends.
func (l *Live) run(ctx context.Context, t *topic, r render) {
	tick := time.NewTicker(l.Interval)
	defer tick.Stop()
	for {
		select {
		case l.gate <- struct{}{}:
		case <-ctx.Done():
			return
		}
		content, err := l.renderOnce(ctx, r)
		<-l.gate
		if ctx.Err() != nil {
			return
		}
		l.publish(t, content, err)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-l.stopped:
			return
		}
	}
}

func (l *Live) renderOnce(ctx context.Context, r render) ([]byte, error) {
	ctx, cancel := context.WithTimeout(db.WithClass(ctx, "read "+prefix+" live"), l.Timeout)
	defer cancel()
	return r(ctx)
}

// publish tells the viewers of a topic about a rendering whose result differs from the previous one.
func (l *Live) publish(t *topic, content []byte, err error) {
	next := rendering{content: content, hash: hashOf(content)}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err != nil {
		if t.now.problem == "" { // one warning, although the page is rendered again and again
			slog.Warn("Rendering a page of the console failed", "error", err)
		}
		next = t.now
		next.problem = "berth cannot read this page now. It shows an older state."
	}
	if t.now.content != nil && next.hash == t.now.hash && next.problem == t.now.problem {
		return
	}
	t.now = next
	for viewer := range t.viewers {
		select {
		case viewer <- struct{}{}:
		default: // the viewer has not read the previous value yet, and will read this rendering
		}
	}
}
