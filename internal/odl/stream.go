package odl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/coder/websocket"
)

// Topic is a part of the controller's data whose changes it tells.
type Topic string

// The topics.
const (
	TopicPorts       Topic = "/neutron:neutron/neutron:ports"
	TopicHostConfigs Topic = "/neutron:neutron/neutron:hostconfigs"
)

// Notice says that something has changed. What it is now is to be asked for.
type ChangeEvent struct {
	ID        string // of the port; empty for other topics, or if the controller's words are not understood
	Operation string // created, updated or deleted
}

const (
	// maxNotice bounds one message of the controller.
	maxNotice = 16 << 20
	// pulse is how often a silent connection is tried.
	pulse = 15 * time.Second
)

// Watch subscribes to a topic and hands each notice to heard until the connection ends, which is always an error: what
// happens before the next Watch is not told. connected is called once notices come.
func (c *Client) Watch(ctx context.Context, t Topic, connected func(), heard func(ChangeEvent)) error {
	stream, err := c.subscribe(ctx, t)
	if err != nil {
		return err
	}
	at, err := c.locate(ctx, stream)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	header := http.Header{"User-Agent": {"berth"}}
	if r := (&http.Request{Header: header}); c.config.User != "" && at.Hostname() == c.host {
		r.SetBasicAuth(c.config.User, c.config.Password)
	}
	conn, resp, err := websocket.Dial(call, at.String(), &websocket.DialOptions{HTTPClient: c.http, HTTPHeader: header}) //nolint:bodyclose // Dial's
	if err != nil {
		if resp != nil {
			err = fmt.Errorf("the controller answered %d", resp.StatusCode)
		}
		return fmt.Errorf("connect to the stream of %s: %w", t, err)
	}
	conn.SetReadLimit(maxNotice)
	defer func() { _ = conn.CloseNow() }()
	connected()
	return fmt.Errorf("the stream of %s has ended: %w", t, listen(ctx, conn, heard))
}

func (c *Client) subscribe(ctx context.Context, t Topic) (string, error) {
	const path = "/restconf/operations/sal-remote:create-data-change-event-subscription"
	body := fmt.Sprintf(`{"input":{"path":%q,"sal-remote-augment:datastore":"OPERATIONAL","sal-remote-augment:scope":"SUBTREE","sal-remote-augment:notification-output-type":"JSON"}}`, t)
	a := c.send(ctx, http.MethodPost, c.root+path, []byte(body))
	if err := failure("POST", path, a); err != nil {
		return "", err
	}
	var answer struct {
		Output struct {
			Name string `json:"stream-name"`
		} `json:"output"`
	}
	if err := json.Unmarshal(a.Body, &answer); err != nil || answer.Output.Name == "" {
		return "", fmt.Errorf("POST %s: %w: no name of a stream", path, ErrUnexpectedBody)
	}
	return answer.Output.Name, nil
}

// locate asks where a stream is. A controller that is reached by TLS is not left for plain text.
func (c *Client) locate(ctx context.Context, stream string) (*url.URL, error) {
	path := "/restconf/streams/stream/" + (&url.URL{Path: stream}).EscapedPath() + "?odl-leaf-nodes-only=true"
	a := c.send(ctx, http.MethodGet, c.root+path, nil)
	if err := failure("GET", path, a); err != nil {
		return nil, err
	}
	at, err := url.Parse(a.Location)
	if err == nil {
		at.Scheme, err = socket(at.Scheme, c.secure)
	}
	if err == nil && at.Host == "" {
		err = errors.New("no host")
	}
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w: no place of a stream: %w", path, ErrUnexpectedBody, err)
	}
	return at, nil
}

func socket(scheme string, secure bool) (string, error) {
	switch {
	case scheme == "wss" || scheme == "https", secure && (scheme == "ws" || scheme == "http"):
		return "wss", nil
	case scheme == "ws" || scheme == "http":
		return "ws", nil
	}
	return "", fmt.Errorf("scheme %q", scheme)
}

// listen reads notices until the connection ends, or the controller no longer answers when it is silent.
func listen(ctx context.Context, conn *websocket.Conn, heard func(ChangeEvent)) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pulse):
			}
			call, cancel := context.WithTimeout(ctx, pulse)
			err := conn.Ping(call)
			cancel()
			if err != nil {
				fail(fmt.Errorf("no pulse: %w", err))
				return
			}
		}
	}()
	for {
		_, raw, err := conn.Read(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return err
		}
		for _, n := range notices(raw) {
			heard(n)
		}
	}
}

// portPath finds the port's ID in a notice's path.
var portPath = regexp.MustCompile(`\[[a-z-]*:?uuid='([^']+)'\]`)

// notices reads a message. Of one that is not understood it is known that something has changed.
func notices(raw []byte) []ChangeEvent {
	var message struct {
		Notification struct {
			Changed struct {
				Event json.RawMessage `json:"data-change-event"`
			} `json:"data-changed-notification"`
		} `json:"notification"`
	}
	type event struct {
		Path      string `json:"path"`
		Operation string `json:"operation"`
	}
	var events []event
	err := json.Unmarshal(raw, &message)
	if err == nil && json.Unmarshal(message.Notification.Changed.Event, &events) != nil {
		events = make([]event, 1)
		err = json.Unmarshal(message.Notification.Changed.Event, &events[0])
	}
	if err != nil {
		return []ChangeEvent{{}}
	}
	all := make([]ChangeEvent, len(events))
	for i, e := range events {
		all[i].Operation = e.Operation
		if m := portPath.FindStringSubmatch(e.Path); m != nil {
			all[i].ID = m[1]
		}
	}
	return all
}
