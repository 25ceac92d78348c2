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

// StreamList returns a response with a list: a JSON object whose only field has the given name. StreamList
// gets the items page by page from the function `next`, whose result `last` is true if no page follows. If
// the first page cannot be read, StreamList returns the error. If a later page cannot be read, the Stream
// breaks the connection, so that the client does not take a part of the list for the whole list.
//
// A page is read and encoded before it is written. Therefore a slow client uses the memory of one encoded
// page, and no connection to the database.
func StreamList(
	r *http.Request,
	name string,
	next func(ctx context.Context) (items []any, last bool, err error),
) (int, any, error) {
	request := r.Context()
	l := &listEncoder{}
	fmt.Fprintf(&l.page, `{%q:[`, name)
	last, err := l.encodePage(next(request))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, Stream(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		ctx := endless{r.Context(), request}
		for {
			if last {
				l.page.WriteString("]}")
			}
			if BeginPage(w, r) != nil {
				return
			}
			if _, err := w.Write(l.page.Bytes()); err != nil || last {
				return
			}
			l.page.Reset()
			if last, err = l.encodePage(next(ctx)); err != nil {
				slog.WarnContext(ctx, "a list could not be read to its end; the connection is broken",
					"list", name, "error", err)
				BreakConnection(w)
				return
			}
		}
	}), nil
}

// listEncoder encodes the items of a list as JSON.
type listEncoder struct {
	page  bytes.Buffer // the encoded items that are not written yet
	begun bool         // the list has an item already
}

// encodePage adds the results of a function that reads a page to the encoded page.
func (l *listEncoder) encodePage(items []any, last bool, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	e := json.NewEncoder(&l.page)
	e.SetEscapeHTML(false)
	for _, item := range items {
		if l.begun {
			l.page.WriteByte(',')
		}
		l.begun = true
		if err := e.Encode(item); err != nil {
			return false, err
		}
		l.page.Truncate(l.page.Len() - 1) // the encoder adds a line break
	}
	return last, nil
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
