package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"berth/internal/api/osapi"
	"berth/internal/config"
	"berth/internal/identity"
	"berth/internal/server"
)

const globalRequest = "req-0b3ee4ea-5a4b-4b64-8d38-0e0bd6a7a0c1"

// serveLogged sends requests (method, path and token) to an API and returns the log as objects, and the
// request IDs of the answers.
func serveLogged(t *testing.T, reads float64, requests ...[3]string) (log []map[string]any, ids []string) {
	t.Helper()
	cfg, err := config.Load([]string{"BERTH_LOG_FORMAT=json"})
	if err != nil {
		t.Fatal(err)
	}
	ok := func(*http.Request) (int, any, error) { return http.StatusOK, nil, nil }
	api := &osapi.API{
		Prefix:   "/networking",
		Identity: identity.Noauth{},
		Routes: []osapi.Route{
			{Method: http.MethodGet, Path: "/v2.0/ports/{id}", Handle: ok},
			{Method: http.MethodDelete, Path: "/v2.0/ports/{id}", Handle: ok},
		},
		Fail: func(w http.ResponseWriter, _ *http.Request, e *osapi.Error) { osapi.WriteJSON(w, e.Status, nil) },
	}
	var b bytes.Buffer
	h := server.MeasureRequests(server.NewLogger(&b, cfg), reads, "networking", api)
	for _, request := range requests {
		r := httptest.NewRequestWithContext(t.Context(), request[0], request[1], nil)
		if request[2] != "" {
			r.Header.Set("X-Auth-Token", request[2])
		}
		r.Header.Set("X-Openstack-Request-Id", globalRequest)
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		ids = append(ids, answer.Header().Get("X-Openstack-Request-Id"))
	}
	for line := range strings.Lines(b.String()) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("log line %q: %v, want one JSON object", line, err)
		}
		log = append(log, object)
	}
	return log, ids
}

func TestRequestLog_NamesRouteStatusCallerAndRequestIDOfEachRequest(t *testing.T) {
	t.Parallel()
	log, ids := serveLogged(t, 1,
		[3]string{"GET", "/networking/v2.0/ports/7", "ann:blue\nlevel=ERROR"},
		[3]string{"DELETE", "/networking/v2.0/ports/7", ""},
		[3]string{"SPLIT", "/networking/nothing", "admin"},
	)
	want := []map[string]any{
		{"method": "GET", "route": "/v2.0/ports/{id}", "status": 200.0, "project": "blue\nlevel=ERROR"},
		{"method": "DELETE", "route": "/v2.0/ports/{id}", "status": 401.0},
		{"method": "other", "route": "unmatched", "status": 404.0, "project": "admin"},
	}
	if len(log) != len(want) {
		t.Fatalf("log of %d requests: got %d lines, want one for each", len(want), len(log))
	}
	for i, got := range log {
		if ms, ok := got["milliseconds"].(float64); !ok || ms < 0 {
			t.Errorf("request %d: got %v milliseconds, want a positive number", i, got["milliseconds"])
		}
		for _, key := range []string{"time", "milliseconds"} {
			delete(got, key)
		}
		for key, value := range map[string]any{
			"level":             "INFO",
			"msg":               "Request answered",
			"api":               "networking",
			"request_id":        ids[i],
			"global_request_id": globalRequest,
		} {
			want[i][key] = value
		}
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("log of request %d: got %v, want %v", i, got, want[i])
		}
	}
}

func TestRequestLog_SharesOfReadsButEveryOtherRequest(t *testing.T) {
	t.Parallel()
	log, _ := serveLogged(t, 0,
		[3]string{"GET", "/networking/v2.0/ports/7", "admin"},
		[3]string{"DELETE", "/networking/v2.0/ports/7", "admin"},
		[3]string{"GET", "/networking/nothing", "admin"},
	)
	if len(log) != 2 || log[0]["method"] != "DELETE" || log[1]["status"] != 404.0 {
		t.Errorf("log without reads: got %v, want the DELETE and the GET that was answered with 404", log)
	}
}
