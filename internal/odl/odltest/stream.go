package odltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

const (
	subscriptions = "/restconf/operations/sal-remote:create-data-change-event-subscription"
	streams       = "/restconf/streams/stream/"
	sockets       = "/_sockets/"
	portsPath     = "/neutron:neutron/neutron:ports"
	hostsPath     = "/neutron:neutron/neutron:hostconfigs"
)

// stream is one who listens to changes of a path.
type stream struct {
	path string
	tell chan []byte
	end  chan struct{}
}

// backlog is how many notices may wait for one who listens; who is slower than that is cut off.
const backlog = 10_000

// subscribe makes a stream for the path that is asked for, as the real controller does it whether or not there is one.
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
		return refuse(http.StatusBadRequest, "malformed-message")
	}
	in := asked.Input
	name := "data-change-event-subscription" + strings.ReplaceAll(in.Path, "/neutron:neutron", "/neutron-neutron") +
		"/datastore=" + in.Datastore + "/scope=" + in.Scope + "/" + in.Output
	if c.told.names == nil {
		c.told.names = map[string]string{}
	}
	c.told.names[name] = in.Path
	return reply{status: http.StatusOK, body: map[string]any{"output": map[string]any{"stream-name": name}}}
}

// listen serves a stream until its end.
func (c *Controller) listen(w http.ResponseWriter, r *http.Request) {
	s := c.join(strings.TrimPrefix(r.URL.Path, sockets))
	if s == nil {
		http.Error(w, "no such stream", http.StatusNotFound)
		return
	}
	defer c.leave(s)
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
		case <-s.end:
			return
		case m := <-s.tell:
			if conn.Write(gone, websocket.MessageText, m) != nil {
				return
			}
		}
	}
}

// join lets one more listen to the stream of that name, from now on; nil if there is none.
func (c *Controller) join(name string) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &stream{path: c.told.names[name], tell: make(chan []byte, backlog), end: make(chan struct{})}
	if s.path == "" {
		return nil
	}
	if c.told.streams == nil {
		c.told.streams = map[*stream]bool{}
	}
	c.told.streams[s] = true
	return s
}

func (c *Controller) leave(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.told.streams, s)
}

// Listeners is how many listen to the controller at this moment.
func (c *Controller) OpenStreams() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.told.streams)
}

// Hush cuts all streams off. With forget, their names are no longer known, as after a restart.
func (c *Controller) CloseStreams(forget bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.told.streams {
		c.cut(s)
	}
	if forget {
		c.told.names = nil
	}
}

func (c *Controller) cut(s *stream) {
	close(s.end)
	delete(c.told.streams, s)
}

// tell sends a notice to those who listen to that part of the data.
func (c *Controller) tell(part, path, operation, content string) {
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
	for s := range c.told.streams {
		if s.path != part {
			continue
		}
		select {
		case s.tell <- raw:
		default:
			c.cut(s)
		}
	}
}

// Babble sends any message to all who listen.
func (c *Controller) SendRaw(raw []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broadcast(portsPath, raw)
	c.broadcast(hostsPath, raw)
}
