package harness

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"berth/internal/contract"
	"berth/internal/server/servertest"
)

// rpcAgents sends the calls of Neutron's agents over RabbitMQ, one call at a time, and connects again after a
// failure.
type rpcAgents struct {
	url     string
	mu      sync.Mutex
	conn    *amqp.Connection
	channel *amqp.Channel
	replies <-chan amqp.Delivery
	queue   string
}

// report sends dhcp_ready_on_ports or update_device_list, and reports whether berth has accepted the report.
func (a *rpcAgents) report(ctx context.Context, _ *randomClient, port string, r contract.Report) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	method, version, args := "dhcp_ready_on_ports", "1.5", servertest.Object{"port_ids": []string{port}}
	if r.Entity == "L2" {
		method, version = "update_device_list", "1.9"
		args = servertest.Object{
			"devices_up":      []string{port},
			"devices_down":    []string{},
			"agent_id":        "ovs-agent-" + r.Host,
			"host":            r.Host,
			"refresh_tunnels": false,
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	result, err := a.call(ctx, method, version, args)
	if err != nil {
		a.disconnect()
		return false
	}
	var done struct {
		Failed []string `json:"failed_devices_up"`
	}
	return r.Entity != "L2" || json.Unmarshal(result, &done) == nil && len(done.Failed) == 0
}

func (a *rpcAgents) disconnect() {
	if a.conn != nil {
		_ = a.conn.Close()
		a.conn = nil
	}
}

func (a *rpcAgents) connect() (err error) {
	if a.conn != nil && !a.conn.IsClosed() {
		return nil
	}
	if a.conn, err = amqp.DialConfig(a.url, amqp.Config{Dial: amqp.DefaultDial(3 * time.Second)}); err != nil {
		a.conn = nil
		return err
	}
	if a.channel, err = a.conn.Channel(); err != nil {
		return err
	}
	q, err := a.channel.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		return err
	}
	a.queue = q.Name
	if a.replies, err = a.channel.Consume(q.Name, "", true, true, false, false, nil); err != nil {
		return err
	}
	return a.receiveCasts("dhcp_agent.net-1")
}

// receiveCasts receives the notifications for an agent and drops them. While an agent has no queue, berth
// does not send the notifications for this agent.
func (a *rpcAgents) receiveCasts(topic string) error {
	if err := a.channel.ExchangeDeclare("neutron", "topic", false, false, false, false, nil); err != nil {
		return err
	}
	if _, err := a.channel.QueueDeclare(topic, false, false, false, false, nil); err != nil {
		return err
	}
	if err := a.channel.QueueBind(topic, topic, "neutron", false, nil); err != nil {
		return err
	}
	casts, err := a.channel.Consume(topic, "", true, false, false, false, nil)
	if err != nil {
		return err
	}
	go func() {
		for range casts { // until the channel closes
		}
	}()
	return nil
}

// keepConnected connects again after each loss of the connection, until the context ends.
func (a *rpcAgents) keepConnected(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, time.Second) {
		a.mu.Lock()
		if err := a.connect(); err != nil {
			a.disconnect()
		}
		a.mu.Unlock()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.disconnect()
}

// call sends an RPC call to berth and returns the result. Its message has the format of oslo.messaging 2.0.
func (a *rpcAgents) call(
	ctx context.Context,
	method, version string,
	args servertest.Object,
) (json.RawMessage, error) {
	if err := a.connect(); err != nil {
		return nil, err
	}
	id := strings.ReplaceAll(uuid.NewString(), "-", "")
	inner, err := json.Marshal(servertest.Object{
		"method":              method,
		"args":                args,
		"version":             version,
		"_msg_id":             id,
		"_reply_q":            a.queue,
		"_timeout":            nil,
		"_unique_id":          id,
		"_context_is_admin":   true,
		"_context_roles":      []string{},
		"_context_request_id": "req-" + id,
	})
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]string{"oslo.version": "2.0", "oslo.message": string(inner)})
	if err != nil {
		return nil, err
	}
	if err := a.channel.PublishWithContext(ctx, "neutron", "q-plugin", false, false, amqp.Publishing{
		ContentType:  "application/json",
		DeliveryMode: amqp.Persistent,
		Expiration:   "10000",
		Body:         body,
	}); err != nil {
		return nil, err
	}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case d, open := <-a.replies:
			if !open {
				return nil, amqp.ErrClosed
			}
			if result, ours, err := decodeReply(d.Body, id); ours {
				return result, err
			}
		}
	}
}

// decodeReply returns the result in a reply, and whether the reply belongs to the call with the ID.
func decodeReply(body []byte, id string) (result json.RawMessage, ours bool, err error) {
	var e struct {
		Message string `json:"oslo.message"`
	}
	var m struct {
		ID      string          `json:"_msg_id"`
		Result  json.RawMessage `json:"result"`
		Failure *string         `json:"failure"`
	}
	if err := errors.Join(json.Unmarshal(body, &e), json.Unmarshal([]byte(e.Message), &m)); err != nil {
		return nil, true, err
	}
	if m.Failure != nil {
		err = errors.New(*m.Failure)
	}
	return m.Result, m.ID == id, err
}
