package interop

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/devstack"
	"berth/internal/server/servertest"
)

// controllerExchange is a request to the controller with its response.
type controllerExchange struct {
	method, path, body string
	status             int
	answer             string
	repeated           bool // berth has sent the same request before, and did not wait for its answer
}

func (e controllerExchange) String() string {
	return fmt.Sprintf("%s %s %s\nresponse: %d %s", e.method, e.path, e.body, e.status, e.answer)
}

// openDaylight is a real controller behind a proxy that records all exchanges with the northbound API.
type openDaylight struct {
	url string // URL of the northbound API through the proxy

	mu        sync.Mutex
	exchanges []controllerExchange
	received  map[string]int     // number of requests by method, path and body
	observer  func(requestPhase) // nil: none
}

// requestPhase is a moment in the course of a request.
type requestPhase int

// The phases of a request: the proxy has received the request, but the controller has not; the controller has
// answered the request, but berth does not have the answer yet.
const (
	requestReceived requestPhase = iota
	requestAnswered
)

// observe makes the proxy call the function f at each phase of each request. The request continues when f
// returns.
func (o *openDaylight) observe(f func(requestPhase)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.observer = f
}

func (o *openDaylight) tellObserver(phase requestPhase) {
	o.mu.Lock()
	f := o.observer
	o.mu.Unlock()
	if f != nil {
		f(phase)
	}
}

// requestBody is the key under which the context of a request holds the body of the request.
type requestBody struct{}

func startOpenDaylight(t *testing.T) *openDaylight {
	t.Helper()
	server, err := devstack.StartOpenDaylight(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	target, err := url.Parse(strings.TrimSuffix(server.URL(), devstack.OpenDaylightPath))
	if err != nil {
		t.Fatal(err)
	}
	o := &openDaylight{received: map[string]int{}}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = o.keepExchange
	// without this, the proxy would log each request that a killed worker has not finished
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	o.url = servertest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		o.countRequest(r, string(body))
		o.tellObserver(requestReceived)
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestBody{}, string(body))))
	})) + devstack.OpenDaylightPath
	return o
}

func (o *openDaylight) keepExchange(r *http.Response) error {
	answer, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(answer))
	path, northbound := strings.CutPrefix(r.Request.URL.Path, devstack.OpenDaylightPath)
	if !northbound {
		return nil
	}
	body, _ := r.Request.Context().Value(requestBody{}).(string)
	o.tellObserver(requestAnswered)
	o.mu.Lock()
	defer o.mu.Unlock()
	repeated := o.received[requestKey(r.Request, body)] > 1
	o.exchanges = append(o.exchanges,
		controllerExchange{r.Request.Method, path, body, r.StatusCode, string(answer), repeated})
	return nil
}

func (o *openDaylight) countRequest(r *http.Request, body string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.received[requestKey(r, body)]++
}

func requestKey(r *http.Request, body string) string {
	return r.Method + " " + r.URL.Path + " " + body
}

// failures returns the exchanges in which the controller refused a request. failures leaves out reads of
// objects that the controller does not have. failures also leaves out second creations of an object, because
// berth sends a request again if the controller is slow.
func (o *openDaylight) failures() []controllerExchange {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.exchanges), func(e controllerExchange) bool {
		return e.status < http.StatusBadRequest || e.method == http.MethodPost && e.repeated ||
			e.method == http.MethodGet && e.status == http.StatusNotFound
	})
}

// sendJSON sends a request and returns the response's status and body.
func sendJSON(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(raw)
}
