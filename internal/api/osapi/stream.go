package osapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// Stream is the body of a response that has no fixed end. The Stream writes the status, the headers and the
// body of the response. The context of r has the values of the request's context, but no deadline: it ends
// when the client disconnects. The Stream must itself set the deadlines of the connection, with BeginPage or
// http.NewResponseController.
type Stream func(w http.ResponseWriter, r *http.Request)

// endless is a context with the values of one context, and with the deadline and the cancellation of another.
type endless struct {
	context.Context                 // of the connection to the client
	values          context.Context // of the request
}

// Value implements context.Context.
func (c endless) Value(key any) any { return c.values.Value(key) }

// StreamList returns a response with a list: a JSON object with the list under the given name, and with the
// fields `more` after the list. StreamList gets the items page by page from the function `next`, whose result
// `last` is true if no page follows. If the first page cannot be read, StreamList returns the error. If a
// later page cannot be read, or if its client has too many other answers that it does not read, the Stream
// breaks the connection, so that the client does not take a part of the list for the whole list.
//
// A page is read and encoded before it is written. Therefore a slow client uses the memory of one encoded
// page, which counts as an answer of the client, and no connection to the database.
func StreamList(
	r *http.Request,
	name string,
	more map[string]any,
	next func(ctx context.Context) (items []any, last bool, err error),
) (int, any, error) {
	l := &listStream{request: r, name: name, next: next, release: func() {}}
	var err error
	if l.end, err = encodeEnd(more); err != nil {
		return 0, nil, err
	}
	l.start = fmt.Appendf(nil, `{%q:[`, name)
	if err := l.read(r.Context()); err != nil {
		return 0, nil, err
	}
	if l.last {
		return http.StatusOK, l.page, nil
	}
	if l.release, err = holdAnswer(r, cap(l.page)); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, Stream(l.write), nil
}

// encodeEnd encodes the end of a list, and the fields that follow the list.
func encodeEnd(more map[string]any) ([]byte, error) {
	if len(more) == 0 {
		return []byte("]}"), nil
	}
	fields, err := encode(more)
	if err != nil {
		return nil, fmt.Errorf("encode the response: %w", err)
	}
	return append([]byte("],"), fields[1:]...), nil
}

// listStream is a list that is written page by page.
type listStream struct {
	request *http.Request
	name    string
	next    func(ctx context.Context) (items []any, last bool, err error)
	start   []byte // precedes the first item; nil: it is in a page already
	end     []byte // follows the last item
	page    []byte
	begun   bool   // the list has an item already
	last    bool   // no page follows
	release func() // of the memory of the page
}

// write is the Stream of the list.
func (l *listStream) write(w http.ResponseWriter, r *http.Request) {
	defer func() { l.release() }()
	w.Header().Set("Content-Type", "application/json")
	ctx := endless{r.Context(), l.request.Context()}
	for {
		if BeginPage(w, r) != nil {
			return
		}
		if _, err := w.Write(l.page); err != nil || l.last {
			return
		}
		if err := l.readNext(ctx); err != nil {
			slog.WarnContext(ctx, "a list could not be read to its end; the connection is broken",
				"list", l.name, "error", err)
			BreakConnection(w)
			return
		}
	}
}

// readNext replaces the page by the next page, with a slot for reading.
func (l *listStream) readNext(ctx context.Context) error {
	l.page = nil
	done, err := reads.Acquire(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := l.read(ctx); err != nil {
		return err
	}
	l.release()
	l.release = func() {}
	release, err := holdAnswer(l.request, cap(l.page))
	if err == nil {
		l.release = release
	}
	return err
}

// read replaces the page by the items of the next page. Each page has memory of its own, of its own size: the
// buffer in which a page grows can be twice as large, and a small page in the buffer of a large one would
// count as small while the client does not read it.
func (l *listStream) read(ctx context.Context) error {
	items, last, err := l.next(ctx)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	page.Write(l.start)
	l.start = nil
	e := json.NewEncoder(&page)
	e.SetEscapeHTML(false)
	for _, item := range items {
		if l.begun {
			page.WriteByte(',')
		}
		l.begun = true
		if err := e.Encode(item); err != nil {
			return err
		}
		page.Truncate(page.Len() - 1) // the encoder adds a line break
	}
	if l.last = last; last {
		page.Write(l.end)
	}
	l.page = bytes.Clone(page.Bytes())
	return nil
}

// BeginPage begins the write timeout of the HTTP server anew for the next page of a Stream, so that a client
// may read a long response as long as it accepts each page in time. BeginPage also ends the read timeout,
// because the request has been read.
func BeginPage(w http.ResponseWriter, r *http.Request) error {
	var deadline time.Time
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 {
		deadline = time.Now().Add(s.WriteTimeout)
	}
	control := http.NewResponseController(w)
	err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(deadline))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// BreakConnection ends a response that has begun and cannot be completed, so that the client sees that the
// response is not complete.
func BreakConnection(w http.ResponseWriter) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(-time.Second))
	_, _ = w.Write([]byte("\n")) // fails because of the deadline, so that the response does not end properly
	_ = control.Flush()
}
