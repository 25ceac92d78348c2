package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
)

// jsonListener lets net/http refuse in JSON what it could not read as a request: a path with a bad percent encoding, a
// header without end, what is no HTTP. No handler sees those, and its own words are plain text.
type jsonListener struct{ net.Listener }

func (l jsonListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		return jsonConn{tcp}, nil
	}
	return conn, err
}

type jsonConn struct{ *net.TCPConn } // whose CloseWrite net/http looks for

// plainRefusal is what all refusals by net/http itself have between the status and the words. An answer of a handler
// has a date.
const plainRefusal = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// Write writes p, or the refusal that it is in JSON.
func (c jsonConn) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(p, []byte("HTTP/1.1 4")) && !bytes.HasPrefix(p, []byte("HTTP/1.1 501")) {
		return c.TCPConn.Write(p)
	}
	head, words, plain := bytes.Cut(p, []byte(plainRefusal))
	status, err := strconv.Atoi(string(head[len("HTTP/1.1 "):min(len(head), len("HTTP/1.1 400"))]))
	if !plain || err != nil || bytes.Contains(head, []byte("\r\n")) {
		return c.TCPConn.Write(p)
	}
	if _, err := c.TCPConn.Write(refusalInJSON(status, string(words))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// refusalInJSON is the whole answer. Which API was meant is not known, so it has what each of them promises.
func refusalInJSON(status int, words string) []byte {
	title := http.StatusText(status)
	message := "The request could not be read: " + words
	body, _ := json.Marshal(map[string]any{
		"error":         map[string]any{"code": status, "title": title, "message": message},
		"errors":        []any{map[string]any{"status": status, "title": title, "detail": message, "request_id": ""}},
		"NeutronError":  map[string]any{"type": "HTTPBadRequest", "message": message, "detail": ""},
		"error_message": message,
	})
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, title, len(body), body)
}
