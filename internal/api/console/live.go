package console

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"berth/internal/panics"
	"berth/internal/store/db"
)

// Live renders pages again and again for the streams of the browsers that show them. All streams of a page
// share one rendering at a time, whatever their number is.
type Live struct {
	Interval time.Duration // time between two renderings of a page
	Timeout  time.Duration // maximum duration of one rendering
	Max      int           // maximum number of streams
	// MaxEach is the maximum number of streams of one user of a project; 0: only Max counts
	MaxEach int
	// Heartbeat is the time after which a stream without a change sends a comment, so that proxies keep the
	// connection, and validates the token of the viewer again.
	Heartbeat time.Duration
	// Grace is how long a stream goes on while the token of the viewer cannot be validated.
	Grace time.Duration

	gate    chan struct{} // limits the number of renderings at the same time
	stopped chan struct{}
	once    sync.Once

	mutex   sync.Mutex
	streams int
	each    map[viewer]int // number of streams of each user
	topics  map[string]*topic
}

// viewer is a user of a project.
type viewer struct{ user, project string }

// maxRenderings is the maximum number of pages for administrators that Live renders at the same time. Each
// rendering uses one of the reserved connections to the database.
const maxRenderings = 2

// NewLive returns a Live for at most 100 streams of pages for administrators.
func NewLive() *Live { return newLive(maxRenderings) }

// NewProjectLive returns a Live for at most 100 streams of pages of projects, at most 10 of one user of a
// project. It renders one page at a time, so the pages of projects together use at most one connection to the
// database.
func NewProjectLive() *Live {
	l := newLive(1)
	l.MaxEach = 10
	return l
}

func newLive(renderings int) *Live {
	return &Live{
		Interval:  2 * time.Second,
		Timeout:   10 * time.Second,
		Max:       100,
		Heartbeat: 15 * time.Second,
		Grace:     validationGrace,
		gate:      make(chan struct{}, renderings),
		stopped:   make(chan struct{}),
		each:      map[viewer]int{},
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
// rendering. If there are too many streams, in total or of the user `who`, `ok` is false. Otherwise the
// caller must call leave when its stream ends.
func (l *Live) watch(
	key string,
	who viewer,
	r render,
) (changed <-chan struct{}, current func() rendering, leave func(), ok bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.streams >= l.Max || l.MaxEach > 0 && l.each[who] >= l.MaxEach {
		return nil, nil, nil, false
	}
	l.streams++
	l.each[who]++
	t := l.topics[key]
	if t == nil {
		ctx, end := context.WithCancel(context.Background())
		t = &topic{viewers: map[chan struct{}]bool{}, end: end}
		l.topics[key] = t
		go l.run(ctx, t, r)
	}
	changes := make(chan struct{}, 1)
	t.viewers[changes] = true
	if t.now.content != nil {
		changes <- struct{}{}
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
		if l.each[who]--; l.each[who] == 0 {
			delete(l.each, who)
		}
		delete(t.viewers, changes)
		if len(t.viewers) == 0 {
			t.end()
			delete(l.topics, key)
		}
	}
	return changes, current, leave, true
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

// renderOnce renders a page once. If the rendering panics, the process and the later renderings continue.
func (l *Live) renderOnce(ctx context.Context, r render) (content []byte, err error) {
	defer panics.Recover(ctx, "the rendering of a page of the console", &err)
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
	for changes := range t.viewers {
		select {
		case changes <- struct{}{}:
		default: // the viewer has not read the previous value yet, and will read this rendering
		}
	}
}
