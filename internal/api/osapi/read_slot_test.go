package osapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestReads_OneClientReadsFewAnswersAtOnce does not run in parallel with other tests, because all requests of
// the process share the slots.
func TestReads_OneClientReadsFewAnswersAtOnce(t *testing.T) {
	const requests = 3 * maxClientReads
	begun, end := make(chan string, 2*requests), make(chan struct{})
	api := &API{
		Prefix:   "/a",
		Identity: callers{},
		Fail:     WriteError,
		Routes: []Route{{Method: "GET", Path: "/{who}", Handle: func(r *http.Request) (int, any, error) {
			begun <- r.PathValue("who")
			<-end
			return 200, "x", nil
		}}},
	}
	var ended sync.WaitGroup
	ask := func(ctx context.Context, who, token string) {
		ended.Go(func() {
			r := httptest.NewRequestWithContext(ctx, "GET", "/a/"+who, nil)
			r.Header.Set("X-Auth-Token", token)
			api.ServeHTTP(httptest.NewRecorder(), r)
		})
	}
	for range requests {
		ask(t.Context(), "red", "eve:red")
	}
	for range maxClientReads {
		<-begun
	}
	ask(t.Context(), "blue", "bob:blue")
	if who := <-begun; who != "blue" {
		t.Errorf("with %d reads of the project red: another read of red began, want that only blue's began", maxClientReads)
	}
	for range maxClientReads + 1 {
		ask(t.Context(), "admin", "admin")
	}
	for range maxClientReads + 1 {
		if who := <-begun; who != "admin" {
			t.Errorf("with reads of two projects: a read of %s began, want the reads of the administrator", who)
		}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	ask(gone, "gone", "eve:red")
	close(end)
	ended.Wait()
	if n := len(begun); n != requests-maxClientReads || len(reads.clients) != 0 {
		t.Errorf(
			"after all requests: %d more reads began and %d clients have slots, want %d and none",
			n,
			len(reads.clients),
			requests-maxClientReads,
		)
	}
}

// slowReader is a client that does not read the first page of a list until the end of the test.
type slowReader struct {
	*httptest.ResponseRecorder
	begun func()
	end   chan struct{}
}

func (s slowReader) Write(p []byte) (int, error) {
	s.begun()
	<-s.end
	return s.ResponseRecorder.Write(p)
}

// TestStreamList_UnreadPagesCountAsAnswersOfTheClient does not run in parallel with other tests, because all
// answers of the process share the memory.
func TestStreamList_UnreadPagesCountAsAnswersOfTheClient(t *testing.T) {
	const pages, size = 3, maxClientAnswers / 4
	api := &API{
		Prefix:   "/a",
		Identity: callers{},
		Fail:     WriteError,
		Routes: []Route{{Method: "GET", Path: "/list", Handle: func(r *http.Request) (int, any, error) {
			left := pages
			return StreamList(r, "things", map[string]any{"more": 7}, func(context.Context) ([]any, bool, error) {
				left--
				return []any{strings.Repeat("x", size-100)}, left == 0, nil
			})
		}}},
	}
	ask := func(w http.ResponseWriter, token string) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/a/list", nil)
		r.Header.Set("X-Auth-Token", token)
		api.ServeHTTP(w, r)
	}
	var ended sync.WaitGroup
	end, lists := make(chan struct{}), []*httptest.ResponseRecorder{}
	for range maxClientAnswers / size {
		w, begun := httptest.NewRecorder(), make(chan struct{})
		lists = append(lists, w)
		ended.Go(func() { ask(slowReader{w, sync.OnceFunc(func() { close(begun) }), end}, "eve:red") })
		<-begun
	}
	for token, want := range map[string]int{"ann:red": 429, "bob:blue": 200, "admin": 200} {
		w := httptest.NewRecorder()
		if ask(w, token); w.Code != want {
			t.Errorf("list of %s while eve:red reads no page: got %d, want %d", token, w.Code, want)
		}
	}
	close(end)
	ended.Wait()
	for _, w := range lists {
		body := w.Body.String()
		if n := strings.Count(body, "xx\""); n != pages || !strings.HasSuffix(body, `"],"more":7}`) {
			t.Errorf(
				"slow list: got %d pages and the end %q, want %d pages and the field after the list",
				n,
				body[max(0, len(body)-20):],
				pages,
			)
		}
	}
	if len(shares.used) != 0 {
		t.Errorf("after all lists: %d shares are in use, want none", len(shares.used))
	}
}

// pageReader is a client of a list that checks what each page counts when it is written.
type pageReader struct {
	*httptest.ResponseRecorder
	check func(page []byte)
}

func (p pageReader) Write(page []byte) (int, error) {
	p.check(page)
	return p.ResponseRecorder.Write(page)
}

// TestStreamList_SmallPageAfterALargeOneNeedsLittleMemory does not run in parallel with other tests, because
// all answers of the process share the memory.
func TestStreamList_SmallPageAfterALargeOneNeedsLittleMemory(t *testing.T) {
	sizes := []int{1 << 20, 1 << 10, 1 << 18, 1 << 10}
	api := &API{
		Prefix:   "/a",
		Identity: callers{},
		Fail:     WriteError,
		Routes: []Route{{Method: "GET", Path: "/list", Handle: func(r *http.Request) (int, any, error) {
			left := sizes
			return StreamList(r, "things", nil, func(context.Context) (items []any, last bool, err error) {
				for range 8 {
					items = append(items, strings.Repeat("x", left[0]/8))
				}
				left = left[1:]
				return items, len(left) == 0, nil
			})
		}}},
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/a/list", nil)
	r.Header.Set("X-Auth-Token", "eve:red")
	written := 0
	api.ServeHTTP(pageReader{httptest.NewRecorder(), func(page []byte) {
		size, counted := sizes[written], shares.used["answers of project red"]
		if cap(page) > size+size/4 || cap(page) > smallAnswer && counted < int64(cap(page)) {
			t.Errorf("page %d of %d bytes: its memory has %d bytes, of which %d count; want about its size, and all of them",
				written, size, cap(page), counted)
		}
		written++
	}}, r)
	if written != len(sizes) {
		t.Errorf("list: got %d pages, want %d", written, len(sizes))
	}
}
