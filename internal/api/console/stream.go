package console

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/identity"
)

// streamWriteTimeout is the maximum time in which a browser must accept one event.
const streamWriteTimeout = 30 * time.Second

// validationGrace is how long a stream goes on while the token of its viewer cannot be validated, for example
// because Keystone does not answer.
const validationGrace = 5 * time.Minute

// streamed is a page that a stream sends.
type streamed struct {
	live    *Live
	key     string // of the rendering that all viewers of the page share
	render  render
	mayRead func(identity.Caller) bool // whether the caller with the validated token may still see the page
}

// stream returns the body of a response that sends the page whenever it changes. The parameter `seen` of the
// request is the hash of the content that the browser shows already.
func (c *handler) stream(r *http.Request, p streamed) (int, any, error) {
	caller := identity.From(r.Context())
	changed, current, leave, ok := p.live.watch(p.key, viewer{caller.User, caller.Project}, p.render)
	if !ok {
		return 0, nil, osapi.Fault(
			http.StatusServiceUnavailable,
			"",
			"You or all users have as many live pages as berth allows. Reload the page to see its present state.",
		).RetryIn(30)
	}
	seen := r.Header.Get("Last-Event-ID")
	if seen == "" {
		seen = r.URL.Query().Get("seen")
	}
	return http.StatusOK, osapi.Stream(func(w http.ResponseWriter, r *http.Request) {
		defer leave()
		c.send(eventWriter{w, http.NewResponseController(w)}, r, p, seen, changed, current)
	}), nil
}

// send sends events until the client disconnects, the process stops or the token is no longer valid.
func (c *handler) send(
	w eventWriter,
	r *http.Request,
	p streamed,
	seen string,
	changed <-chan struct{},
	current func() rendering,
) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx must not collect the events
	beat := time.NewTicker(p.live.Heartbeat)
	defer beat.Stop()
	if w.event("state", "", "Live") != nil {
		return
	}
	problem, validated := "", time.Now()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case <-p.live.stopped:
			return
		case <-beat.C:
			caller, denied := c.cookies.Authenticate(r)
			switch {
			case errors.Is(denied, identity.ErrUnauthenticated) || denied == nil && !p.mayRead(caller):
				_ = w.event("state", "", "The token has expired. Log in again.")
				_ = w.event("end", "", "expired")
				return
			case denied == nil:
				validated = time.Now()
			case errors.Is(denied, identity.ErrTooManyAttempts) || time.Since(validated) > p.live.Grace:
				// The viewer can cause the first error, and so must not keep the page with it. The browser
				// connects again.
				return
			}
			err = w.comment()
		case <-changed:
			now := current()
			if now.problem != problem {
				problem = now.problem
				text := problem
				if text == "" {
					text = "Live"
				}
				err = w.event("state", "", text)
			}
			if err == nil && now.hash != seen && now.content != nil {
				seen = now.hash
				err = w.event("content", now.hash, string(now.content))
			}
		}
		if err != nil {
			return
		}
	}
}

// eventWriter writes server-sent events.
type eventWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// lineEnds replaces the three ends of a line in a stream by a line feed. A browser ends a line at a carriage
// return too, so a name with one would otherwise add fields and whole events of its choice to the stream.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// event writes an event with an ID and a text.
func (w eventWriter) event(name, id, text string) error {
	var b bytes.Buffer
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	fmt.Fprintf(&b, "event: %s\n", name)
	for line := range strings.Lines(lineEnds.Replace(text)) {
		fmt.Fprintf(&b, "data: %s\n", strings.TrimSuffix(line, "\n"))
	}
	b.WriteByte('\n')
	return w.flush(b.Bytes())
}

// comment writes a comment, which browsers ignore.
func (w eventWriter) comment() error { return w.flush([]byte(": the page has not changed\n\n")) }

// flush sends bytes at once. Before, it extends the deadlines of the connection, which the server sets for
// requests with an end. If the server could not extend them, it would end the stream after its read timeout
// or its write timeout.
func (w eventWriter) flush(p []byte) error {
	if err := w.control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if err := w.control.SetWriteDeadline(time.Now().Add(streamWriteTimeout)); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := w.Write(p); err != nil {
		return err
	}
	return w.control.Flush()
}
