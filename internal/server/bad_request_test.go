package server

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// goChecked is the minor version of Go for which jsonConn was last compared with net/http.
const goChecked = "go1.26"

// TestBadRequest_CheckedWithThisGo fails when the Go toolchain has another minor version than goChecked. If
// the test fails, compare net/http's `(*conn).serve` (the answers to errTooLarge, unsupportedTEError,
// statusError and badRequestError) with plainTextHeader, and the answer to tls.RecordHeaderError with
// withoutTLS. Run the tests in bad_request_test.go, in tls_test.go and in internal/torture/hostile, and set
// goChecked.
func TestBadRequest_CheckedWithThisGo(t *testing.T) {
	t.Parallel()
	if v := runtime.Version(); v != goChecked && !strings.HasPrefix(v, goChecked+".") {
		t.Errorf(
			"bad_request.go was checked with %s, but the toolchain is %s: check the error responses of net/http and set goChecked",
			goChecked,
			v,
		)
	}
}

func TestBadRequest_IsJSON(t *testing.T) {
	t.Parallel()
	listener, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewHTTPServer(http.NotFoundHandler())
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	for name, c := range map[string]struct {
		request string
		status  int
		text    string
	}{
		"bad percent encoding":      {"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400, "The request could not be read: 400 Bad Request"},
		"no Host":                   {"GET / HTTP/1.1\r\n\r\n", 400, "The request could not be read: 400 Bad Request: missing required Host header"},
		"header too long":           {"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", 431, "The request could not be read: 431 Request Header Fields Too Large"},
		"unknown transfer encoding": {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: snappy\r\n\r\n", 501, "The request could not be read: Unsupported transfer encoding"},
		"not HTTP":                  {"\x16\x03\x01\r\n\r\n", 400, "The request could not be read: 400 Bad Request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			go func() { _, _ = conn.Write([]byte(c.request)) }()
			r, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Body.Close() }()
			var body struct {
				NeutronError struct{ Message string }
			}
			err = json.NewDecoder(r.Body).Decode(&body)
			if err != nil || r.StatusCode != c.status || r.Header.Get("Content-Type") != "application/json" ||
				r.Header.Get("X-Content-Type-Options") != "nosniff" ||
				body.NeutronError.Message != c.text {
				t.Errorf(
					"answer to a malformed request: got status %s, Content-Type %q, message %q, error %v; want the expected status and message as JSON",
					r.Status, r.Header.Get("Content-Type"), body.NeutronError.Message, err,
				)
			}
		})
	}
}
