package odltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

const (
	subscriptionsPath = "/restconf/operations/sal-remote:create-data-change-event-subscription"
	streamsPath       = "/restconf/streams/stream/"
	socketsPath       = "/_sockets/"
	portsPath         = "/neutron:neutron/neutron:ports"
	hostsPath         = "/neutron:neutron/neutron:hostconfigs"
)

// stream is an open websocket to which the stub sends the change events of a path.
type stream struct {
	path   string
	events chan []byte
	closed chan struct{}
}

// maxQueuedEvents is the maximum number of events in the queue for a slow client. If more events wait, the
// stub closes the stream.
const maxQueuedEvents = 10_000

// subscribe returns the name of the stream for a path. Like the real controller, subscribe returns the same
// name when the stream already exists.
func (c *Controller) subscribe(body []byte) reply {
	var asked struct {
		Input struct {
			Path      string `json:"path"`
			Datastore string `json:"sal-remote-augment:datastore"`
			Scope     string `json:"sal-remote-augment:scope"`
			Output    string `json:"sal-remote-augment:notification-output-type"`
		} `json:"input"`
	}
	if json.Unmarshal(body, &asked) != nil || asked.Input.Path != portsPath && asked.Input.Path != hostsPath {
		return errorReply(http.StatusBadRequest, "malformed-message")
	}
	in := asked.Input
	path := strings.ReplaceAll(in.Path, "/neutron:neutron", "/neutron-neutron")
	name := "data-change-event-subscription" + path +
		"/datastore=" + in.Datastore + "/scope=" + in.Scope + "/" + in.Output
	if c.data.streamPaths == nil {
		c.data.streamPaths = map[string]string{}
	}
	c.data.streamPaths[name] = in.Path
	return reply{status: http.StatusOK, body: map[string]any{"output": map[string]any{"stream-name": name}}}
}

// serveStream writes events to a websocket until the stream or the connection is closed.
func (c *Controller) serveStream(w http.ResponseWriter, r *http.Request) {
	s := c.openStream(strings.TrimPrefix(r.URL.Path, socketsPath))
	if s == nil {
		http.Error(w, "no such stream", http.StatusNotFound)
		return
	}
	defer c.removeStream(s)
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	gone := conn.CloseRead(r.Context())
	for {
		select {
		case <-gone.Done():
			return
		case <-s.closed:
			return
		case m := <-s.events:
			if conn.Write(gone, websocket.MessageText, m) != nil {
				return
			}
		}
	}
}

// openStream opens the stream with this name. openStream returns nil if no subscription has this name.
func (c *Controller) openStream(name string) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &stream{
		path:   c.data.streamPaths[name],
		events: make(chan []byte, maxQueuedEvents),
		closed: make(chan struct{}),
	}
	if s.path == "" {
		return nil
	}
	if c.data.streams == nil {
		c.data.streams = map[*stream]bool{}
	}
	c.data.streams[s] = true
	return s
}

func (c *Controller) removeStream(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.data.streams, s)
}

// OpenStreams returns the number of open streams.
func (c *Controller) OpenStreams() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.data.streams)
}

// CloseStreams closes all streams. If `forget` is true, CloseStreams also forgets the subscriptions, as a
// restart of the controller does.
func (c *Controller) CloseStreams(forget bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.data.streams {
		c.closeStream(s)
	}
	if forget {
		c.data.streamPaths = nil
	}
}

func (c *Controller) closeStream(s *stream) {
	close(s.closed)
	delete(c.data.streams, s)
}

// sendEvent sends a change event to the streams that watch a subtree.
func (c *Controller) sendEvent(part, path, operation, content string) {
	event := map[string]any{"path": path, "operation": operation, "store": "OPERATIONAL"}
	if content != "" {
		event["data"] = map[string]any{"status": map[string]string{"content": content}}
	}
	raw, err := json.Marshal(map[string]any{"notification": map[string]any{
		"data-changed-notification": map[string]any{"data-change-event": event}}})
	if err != nil {
		panic(fmt.Sprintf("odltest: %s", err))
	}
	c.broadcast(part, raw)
}

func (c *Controller) broadcast(part string, raw []byte) {
	for s := range c.data.streams {
		if s.path != part {
			continue
		}
		select {
		case s.events <- raw:
		default:
			c.closeStream(s)
		}
	}
}

// SendRaw sends arbitrary bytes to all streams.
func (c *Controller) SendRaw(raw []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broadcast(portsPath, raw)
	c.broadcast(hostsPath, raw)
}
