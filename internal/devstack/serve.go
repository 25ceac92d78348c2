package devstack

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is a stand-in that answers HTTP on loopback.
type Server struct {
	URL     string
	handler http.Handler
	port    int
	mu      sync.Mutex
	http    *http.Server
}

// Serve lets a handler answer on that port, or on a free one for 0.
func Serve(port int, handler http.Handler) (*Server, error) {
	s := &Server{handler: handler, port: port}
	return s, s.Start()
}

// Start brings a stopped stand-in back on the port that it had.
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

// Stop cuts every connection, as a neighbour that dies does.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.http.Close()
}
