package devstack

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is an HTTP stub on loopback.
type Server struct {
	URL     string
	handler http.Handler
	port    int
	mu      sync.Mutex
	http    *http.Server
}

// Serve starts an HTTP stub with the handler on the port. If the port is 0, Serve chooses a free port.
func Serve(port int, handler http.Handler) (*Server, error) {
	s := &Server{handler: handler, port: port}
	return s, s.Start()
}

// Start starts a stopped stub on the same port.
func (s *Server) Start() error {
	l, err := listen(s.port)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.port = l.Addr().(*net.TCPAddr).Port
	s.URL = "http://" + l.Addr().String()
	server := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
	s.http = server
	go func() { _ = server.Serve(l) }()
	return nil
}

// Stop closes all connections immediately, as a crash does.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.http.Close()
}
