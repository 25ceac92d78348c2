package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// jsonListener translates the error responses of package net/http from plain text into JSON. Package net/http
// itself sends these error responses if it cannot parse the received bytes as a request: a path with a bad
// percent encoding, a header that is too long, bytes that are not HTTP. No http.Handler sees a request that
// net/http cannot parse, and http.Server has no option that changes the error response to such a request.
//
// On a TLS listener, jsonListener translates the response to a client that does not use TLS. Over TLS, the
// error responses stay plain text, because package net/http uses HTTP/2 only on connections of the type
// *tls.Conn itself.
//
// jsonListener depends on the exact bytes that net/http writes, so bad_request_test.go fails when the version
// of Go changes.
type jsonListener struct{ net.Listener }

func (l jsonListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(tcpConn); ok {
		return jsonConn{tcp}, nil
	}
	return conn, err
}

// tcpConn is a TCP connection. net/http uses the method CloseWrite of a connection.
type tcpConn interface {
	net.Conn
	CloseWrite() error
}

// jsonConn is a TCP connection whose method Write translates error responses.
type jsonConn struct{ tcpConn }

// plainTextHeader is the text between the status line and the body in every error response that net/http
// itself sends. The response of a handler also has a Date header, so it does not contain plainTextHeader.
const plainTextHeader = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// withoutTLS is the text before the body in the response that net/http sends on a TLS listener to a request
// without TLS.
const withoutTLS = "HTTP/1.0 400 Bad Request\r\n\r\n"

// Write writes p. If p is an error response that net/http itself sends, Write writes the translation of p
// into JSON instead.
func (c jsonConn) Write(p []byte) (int, error) {
	if text, found := bytes.CutPrefix(p, []byte(withoutTLS)); found {
		return c.writeInstead(p, badRequest(http.StatusBadRequest, strings.TrimSpace(string(text))))
	}
	if !bytes.HasPrefix(p, []byte("HTTP/1.1 4")) && !bytes.HasPrefix(p, []byte("HTTP/1.1 501")) {
		return c.tcpConn.Write(p)
	}
	statusLine, text, plain := bytes.Cut(p, []byte(plainTextHeader))
	status, err := strconv.Atoi(
		string(statusLine[len("HTTP/1.1 "):min(len(statusLine), len("HTTP/1.1 400"))]),
	)
	if !plain || err != nil || bytes.Contains(statusLine, []byte("\r\n")) {
		return c.tcpConn.Write(p)
	}
	return c.writeInstead(p, badRequest(status, string(text)))
}

// writeInstead writes the translation of p. writeInstead returns the length of p, as the caller of Write
// expects.
func (c jsonConn) writeInstead(p, translation []byte) (int, error) {
	if _, err := c.tcpConn.Write(translation); err != nil {
		return 0, err
	}
	return len(p), nil
}

// badRequest returns the whole HTTP response with the given status and error text. The body contains the JSON
// members with which each of the APIs reports an error, because berth cannot read the path of the request and
// therefore does not know which API the client calls.
func badRequest(status int, text string) []byte {
	title := http.StatusText(status)
	message := "The request could not be read: " + text
	body, _ := json.Marshal(map[string]any{
		"error": map[string]any{"code": status, "title": title, "message": message},
		"errors": []any{
			map[string]any{
				"status":     status,
				"title":      title,
				"detail":     message,
				"request_id": "",
			},
		},
		"NeutronError":  map[string]any{"type": "HTTPBadRequest", "message": message, "detail": ""},
		"error_message": message,
	})
	return fmt.Appendf(
		nil,
		"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, title, len(body), body,
	)
}
