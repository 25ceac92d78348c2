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

// Topic is a subtree of the controller's data whose changes can be watched.
type Topic string

// The topics.
const (
	TopicPorts       Topic = "/neutron:neutron/neutron:ports"
	TopicHostConfigs Topic = "/neutron:neutron/neutron:hostconfigs"
)

// ChangeEvent reports that an object at the controller changed. A ChangeEvent does not contain the new state
// of the object.
type ChangeEvent struct {
	ID        string // ID of the port; empty for other topics, or if the event's path is unknown
	Operation string // created, updated or deleted
}

const (
	// maxStreamName is the maximum size of the response that names a stream, in bytes.
	maxStreamName = 4 << 10
	// maxMessage is the maximum size of a message that the controller may send, in bytes.
	maxMessage = 16 << 20
	// maxDecoded is the maximum size of a message that is decoded, in bytes. Each byte of a message with many
	// short events needs many bytes of memory.
	maxDecoded = 1 << 20
	// pingInterval is the interval of pings on an idle connection. pingInterval is also the timeout of a
	// ping.
	pingInterval = 15 * time.Second
)

// Watch subscribes to a topic and calls onEvent for each event until the connection ends. Watch always
// returns an error, which says why the connection ended. Events that happen before `connected` is called or
// after Watch has returned are lost.
func (c *Client) Watch(ctx context.Context, t Topic, connected func(), onEvent func(ChangeEvent)) error {
	stream, err := c.subscribe(ctx, t)
	if err != nil {
		return err
	}
	target, err := c.streamURL(ctx, stream)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	header := http.Header{"User-Agent": {"berth"}}
	if r := (&http.Request{Header: header}); c.config.User != "" && target.Hostname() == c.host {
		r.SetBasicAuth(c.config.User, c.config.Password)
	}
	conn, resp, err := websocket.Dial(
		call,
		target.String(),
		&websocket.DialOptions{HTTPClient: c.http, HTTPHeader: header},
	) //nolint:bodyclose // Dial's
	if err != nil {
		if resp != nil {
			err = fmt.Errorf("the controller answered %d", resp.StatusCode)
		}
		return fmt.Errorf("connect to the stream of %s: %w", t, err)
	}
	conn.SetReadLimit(maxMessage)
	defer func() { _ = conn.CloseNow() }()
	connected()
	return fmt.Errorf("the stream of %s ended: %w", t, readEvents(ctx, conn, onEvent))
}

func (c *Client) subscribe(ctx context.Context, t Topic) (string, error) {
	const path = "/restconf/operations/sal-remote:create-data-change-event-subscription"
	body := fmt.Sprintf(
		`{"input":{"path":%q,"sal-remote-augment:datastore":"OPERATIONAL","sal-remote-augment:scope":"SUBTREE","sal-remote-augment:notification-output-type":"JSON"}}`,
		t,
	)
	a := c.send(ctx, c.root, Request{Method: http.MethodPost, Path: path, Body: []byte(body), MaxAnswer: maxStreamName})
	if err := statusError("POST", path, a); err != nil {
		return "", err
	}
	var answer struct {
		Output struct {
			Name string `json:"stream-name"`
		} `json:"output"`
	}
	if err := json.Unmarshal(a.Body, &answer); err != nil || answer.Output.Name == "" {
		return "", fmt.Errorf("POST %s: %w: it contains no stream name", path, ErrUnexpectedBody)
	}
	return answer.Output.Name, nil
}

// streamURL asks the controller for the URL of a stream. If the client uses TLS for its requests to the
// controller, the stream's URL uses TLS too.
func (c *Client) streamURL(ctx context.Context, stream string) (*url.URL, error) {
	path := "/restconf/streams/stream/" + (&url.URL{Path: stream}).EscapedPath() + "?odl-leaf-nodes-only=true"
	a := c.send(ctx, c.root, Request{Method: http.MethodGet, Path: path})
	if err := statusError("GET", path, a); err != nil {
		return nil, err
	}
	target, err := url.Parse(a.Location)
	if err == nil {
		target.Scheme, err = websocketScheme(target.Scheme, c.secure)
	}
	if err == nil && target.Host == "" {
		err = errors.New("no host")
	}
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w: the header Location contains no stream URL: %w",
			path, ErrUnexpectedBody, err)
	}
	return target, nil
}

func websocketScheme(scheme string, secure bool) (string, error) {
	switch {
	case scheme == "wss" || scheme == "https", secure && (scheme == "ws" || scheme == "http"):
		return "wss", nil
	case scheme == "ws" || scheme == "http":
		return "ws", nil
	}
	return "", fmt.Errorf("scheme %q", scheme)
}

// readEvents reads events from the stream until the connection ends or a ping is not answered.
func readEvents(ctx context.Context, conn *websocket.Conn, onEvent func(ChangeEvent)) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pingInterval):
			}
			call, cancel := context.WithTimeout(ctx, pingInterval)
			err := conn.Ping(call)
			cancel()
			if err != nil {
				fail(fmt.Errorf("ping: %w", err))
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
		for _, n := range decodeEvents(raw) {
			onEvent(n)
		}
	}
}

// portIDInPath matches the port's ID in the path of an event.
var portIDInPath = regexp.MustCompile(`\[[a-z-]*:?uuid='([^']+)'\]`)

// decodeEvents decodes the events in a message of the controller. If the message has an unknown form or is
// larger than maxDecoded, decodeEvents returns one empty event, which means that an unknown object has
// changed.
func decodeEvents(raw []byte) []ChangeEvent {
	if len(raw) > maxDecoded {
		return []ChangeEvent{{}}
	}
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
		if m := portIDInPath.FindStringSubmatch(e.Path); m != nil {
			all[i].ID = m[1]
		}
	}
	return all
}
