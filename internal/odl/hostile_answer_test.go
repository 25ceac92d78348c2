package odl_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coder/websocket"

	"berth/internal/odl"
)

// setCookies sets cookies of 1 KiB with new names in each answer, and the session cookie `last` with the
// number of the request.
type setCookies struct {
	path    string
	answers int
	sent    string // the cookies of the last request
}

func (c *setCookies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.sent = r.Header.Get("Cookie")
	c.answers++
	for i := range 20 {
		w.Header().Add("Set-Cookie", fmt.Sprintf("c%d-%d=%s; Path=%s", c.answers, i, strings.Repeat("x", 1<<10), c.path))
	}
	w.Header().Add("Set-Cookie", fmt.Sprintf("last=%d; Path=/", c.answers))
	_, _ = io.WriteString(w, "{}")
}

func TestCookies_AreBoundedAndKeepTheNewestSession(t *testing.T) {
	t.Parallel()
	controller := &setCookies{path: "/"}
	server := httptest.NewServer(controller)
	t.Cleanup(server.Close)
	client := newClient(t, odl.Config{URL: server.URL})
	for n := range 20 {
		if a := send(t, client, "GET", "/networks", ""); a.Status != 200 {
			t.Fatalf("request %d: got status %d, failure %q %s", n, a.Status, a.Failure, a.Detail)
		}
		if n > 0 && !strings.Contains(controller.sent+";", fmt.Sprintf("last=%d;", n)) {
			t.Errorf("request %d does not have the session cookie of the answer before", n)
		}
		if len(controller.sent) > 70<<10 {
			t.Fatalf("request %d: got %d bytes of cookies, want at most 64 KiB", n, len(controller.sent))
		}
	}
}

func TestOperationalData_ListsThatAreKeptAreBounded(t *testing.T) {
	t.Parallel()
	value := strings.Repeat("x", 1<<20)
	serve := func(envelope, list, object string) *odl.Client {
		return newListClient(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{%q:{%q:[{"service-provider-feature":"first"}`, envelope, list)
			for i := range 200 {
				if _, err := fmt.Fprintf(w, ","+object, i, value); err != nil {
					return
				}
			}
			_, _ = io.WriteString(w, `]}}`)
		})
	}
	c := serve("hostconfigs", "hostconfig", `{"host-id":"%d","host-type":"ODL L2","config":%q}`)
	if hosts, err := c.HostConfigs(t.Context(), odl.HostConfigsPath); err == nil {
		t.Errorf("read 200 MiB of host configurations: got %d and no error", len(hosts))
	}
	c = serve("features", "feature", `{"service-provider-feature":"%d","configuration":%q}`)
	if features, err := c.Features(t.Context()); err == nil {
		t.Errorf("read 200 MiB of features: got %d and no error", len(features))
	}
}

func TestWatch_LargeMessageIsOneEvent(t *testing.T) {
	t.Parallel()
	const message = `{"notification":{"data-changed-notification":{"data-change-event":[{}%s]}}}`
	c := newListClient(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Upgrade") != "":
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			for _, events := range []int{2, 1 << 20} {
				text := fmt.Sprintf(message, strings.Repeat(",{}", events-1))
				if err := conn.Write(r.Context(), websocket.MessageText, []byte(text)); err != nil {
					t.Error(err)
				}
			}
			_ = conn.Close(websocket.StatusNormalClosure, "")
		case r.Method == http.MethodPost:
			_, _ = io.WriteString(w, `{"output":{"stream-name":"a/b=c"}}`)
		default:
			w.Header().Set("Location", "ws://"+r.Host+"/stream")
		}
	})
	events := 0
	_ = c.Watch(t.Context(), odl.TopicPorts, func() {}, func(odl.ChangeEvent) { events++ })
	if events != 3 {
		t.Errorf("messages with 2 and with %d events: got %d events, want 2 and 1", 1<<20, events)
	}
}

// rawController answers each request with the bytes that the function `write` writes to the connection, which
// may be no HTTP.
func rawController(t *testing.T, write func(io.Writer)) *odl.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					write(conn)
				}
			}()
		}
	}()
	return newClient(t, odl.Config{URL: "http://" + l.Addr().String()})
}

// endless writes a text again and again, and returns how many bytes of it the other side has accepted.
func endless(w io.Writer, text string) (bytes int) {
	for block := []byte(strings.Repeat(text, 1+(64<<10)/len(text))); ; {
		n, err := w.Write(block)
		if bytes += n; err != nil {
			return bytes
		}
	}
}

func TestSend_ReadsOnlyTheAllowedPartOfAnAnswer(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{
		"body":            "HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n",
		"chunks":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n",
		"body of a 500":   "HTTP/1.1 500 OK\r\nContent-Length: 1099511627776\r\n\r\n",
		"headers":         "HTTP/1.1 200 OK\r\n",
		"one header":      "HTTP/1.1 200 OK\r\nX-Evil: ",
		"status line":     "HTTP/1.1 200 ",
		"early hints":     "",
		"chunk extension": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
	} {
		text := map[string]string{
			"headers":     "X: y\r\n",
			"early hints": "HTTP/1.1 103 Early Hints\r\nX-Evil: yyyyyyyyyyyyyyyyyyyyyyyyyy\r\n\r\n",
		}[name]
		if text == "" {
			text = "y"
		}
		for _, method := range []string{http.MethodGet, http.MethodPut} {
			accepted := make(chan int, 1)
			client := rawController(t, func(w io.Writer) {
				_, _ = io.WriteString(w, header)
				accepted <- endless(w, text)
			})
			a, err := client.Send(t.Context(), odl.Request{Method: method, Path: "/networks/x", MaxAnswer: 1 << 20})
			if err != nil || len(a.Body) > 1<<20 || a.Status == 0 && a.Failure == "" {
				t.Errorf("%s with an endless %s: got status %d, failure %q, %d bytes, error %v; want at most 1 MiB",
					method, name, a.Status, a.Failure, len(a.Body), err)
			}
			if bytes := <-accepted; bytes > 32<<20 { // with the buffers of both sockets
				t.Errorf("%s with an endless %s: the client accepted %d MiB, want little more than 1 MiB",
					method, name, bytes>>20)
			}
		}
	}
}

func TestSend_DescriptionOfAFailureIsOneShortLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", 100<<10)
	for name, answer := range map[string]string{
		"no HTTP":        "\x1b[2J\u202e" + long + "\r\n\r\n",
		"no header":      "HTTP/1.1 200 OK\r\nfoo bar" + long + "\r\n\r\n",
		"control":        "HTTP/1.1 200 OK\r\nFoo: a\x01b" + long + "\r\n\r\n",
		"Content-Length": "HTTP/1.1 200 OK\r\nContent-Length: 1" + long + "\r\n\r\n",
		"encoding":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: \u009b31m" + long + "\r\n\r\n",
	} {
		client := rawController(t, func(w io.Writer) { _, _ = io.WriteString(w, answer) })
		a := send(t, client, "GET", "/networks/x", "")
		if a.Failure == "" || a.Detail == "" || utf8.RuneCountInString(a.Detail) > 500 ||
			strings.ContainsFunc(a.Detail, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%s: got failure %q with %d bytes: %.200q; want one line of at most 500 characters",
				name, a.Failure, len(a.Detail), a.Detail)
		}
	}
}

// The test is not parallel, because it measures the memory of the process.
func TestSend_MemoryOfConcurrentLargeAnswersIsBounded(t *testing.T) {
	block := bytes.Repeat([]byte("[],"), 20<<10)
	client := rawController(t, func(w io.Writer) {
		_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n"+`{"network":[`)
		for range (64 << 20) / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	var used runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&used)
	before, kept := used.HeapAlloc, make([]odl.Response, odl.DefaultConcurrency)
	var requests sync.WaitGroup
	for i := range kept {
		requests.Go(func() {
			a, err := client.Send(t.Context(), odl.Request{
				Method:    http.MethodGet,
				Path:      "/networks/x",
				MaxAnswer: 64 << 10,
			})
			if err != nil {
				t.Error(err)
			}
			kept[i] = a
		})
	}
	requests.Wait()
	runtime.GC()
	runtime.ReadMemStats(&used)
	if grown := int64(used.HeapAlloc) - int64(before); grown > 32<<20 {
		t.Errorf("%d answers of 64 MiB: %d MiB are in use, want at most 32 MiB", len(kept), grown>>20)
	}
	runtime.KeepAlive(kept)
}

func TestList_CostlyValueIsRefusedBeforeItIsDecoded(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"many lists":  `{"id":"x","a":[` + strings.Repeat("[],", 1<<20) + `[]]}`,
		"many levels": `{"id":"x","a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
	} {
		c := newListClient(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"networks":[`+value+`]}`)
		})
		objects := 0
		_, err := c.List(t.Context(), "/networks", "networks", func(json.RawMessage) error { objects++; return nil })
		if !errors.Is(err, odl.ErrUnexpectedBody) || objects != 0 {
			t.Errorf("list with a value of %s: got %d objects and error %v, want ErrUnexpectedBody", name, objects, err)
		}
	}
}

func TestOperationalData_EndlessListEnds(t *testing.T) {
	t.Parallel()
	for name, text := range map[string][2]string{
		"of unknown keys": {`{"x":1`, `,"x":1`},
		"of ports":        {`{"ports":{"port":[{}`, `,{}`},
		"of blanks":       {` `, ` `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := newMemoryClient(t, odl.Config{Timeout: 10 * time.Second},
					http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						for next := text[0]; ; next = text[1] {
							_, _ = io.WriteString(w, next)
							_ = http.NewResponseController(w).Flush()
							select {
							case <-r.Context().Done():
								return
							case <-time.After(time.Second):
							}
						}
					}))
				begin := time.Now()
				err := client.PortStatuses(t.Context(), func(string, string) error { return nil })
				if took := time.Since(begin); err == nil || took > time.Hour {
					t.Errorf("endless list %s: got error %v after %s, want an error", name, err, took)
				}
			})
		})
	}
}
