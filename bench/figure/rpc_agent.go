package figure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"berth/bench/harness"
)

// rpcAgent is an oslo.messaging client that sends the calls of Neutron's DHCP and Open vSwitch agents and
// subscribes to the topics of both agents. The calls, topics and envelopes of rpcAgent equal those that were
// recorded from the Neutron agents of Debian.
type rpcAgent struct {
	conn    *amqp.Connection
	channel *amqp.Channel
	queue   string // queue for replies
	replies <-chan amqp.Delivery
}

// newRPCAgent connects an agent with RabbitMQ and subscribes the agent to its topics.
func newRPCAgent(url string) (*rpcAgent, error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return nil, fmt.Errorf("connect with RabbitMQ: %w", err)
	}
	a := &rpcAgent{conn: conn, queue: "reply_" + hexID()}
	if a.channel, err = conn.Channel(); err == nil {
		err = a.subscribe()
	}
	if err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

func (a *rpcAgent) close() { _ = a.conn.Close() }

func (a *rpcAgent) subscribe() (err error) {
	expires := amqp.Table{"x-expires": int32(1800000)}
	if _, err = a.channel.QueueDeclare(a.queue, false, false, false, false, expires); err != nil {
		return err
	}
	if a.replies, err = a.channel.Consume(a.queue, "", true, false, false, false, nil); err != nil {
		return err
	}
	own := "dhcp_agent." + harness.DHCPHost
	err = errors.Join(
		a.channel.ExchangeDeclare("neutron", "topic", false, false, false, false, nil),
		a.discard(own, nil, "neutron", own),
	)
	for kind, version := range objectVersions {
		topic := "neutron-vo-" + kind + "-" + version
		err = errors.Join(
			err,
			a.channel.ExchangeDeclare(topic+"_fanout", "fanout", false, true, false, false, nil),
			a.discard(topic+"_fanout_"+hexID(), expires, topic+"_fanout", topic),
		)
	}
	return err
}

// discard binds a queue to an exchange, consumes the messages of the queue and drops them.
func (a *rpcAgent) discard(queue string, args amqp.Table, exchange, key string) error {
	if _, err := a.channel.QueueDeclare(queue, false, false, false, false, args); err != nil {
		return err
	}
	if err := a.channel.QueueBind(queue, key, exchange, false, nil); err != nil {
		return err
	}
	messages, err := a.channel.Consume(queue, "", true, false, false, false, nil)
	if err != nil {
		return err
	}
	go func() {
		for range messages { // until the channel closes
		}
	}()
	return nil
}

// objectVersions are the versioned objects whose updates an Open vSwitch agent of Debian 12 receives.
var objectVersions = map[string]string{
	"Port":              "1.7",
	"Subnet":            "1.1",
	"Network":           "1.1",
	"SecurityGroup":     "1.5",
	"SecurityGroupRule": "1.2",
}

// reportStart sends the first report_state of both agents.
func (a *rpcAgent) reportStart(ctx context.Context) error {
	state := func(kind, host string, versions map[string]string) error {
		_, err := a.call(
			ctx,
			"q-reports-plugin",
			"report_state",
			"1.2",
			harness.Attributes{"time": time.Now().UTC().Format("2006-01-02T15:04:05.000000"),
				"agent_state": harness.Attributes{
					"agent_state": harness.Attributes{
						"agent_type":        kind,
						"host":              host,
						"binary":            "bench",
						"topic":             "N/A",
						"configurations":    harness.Attributes{},
						"start_flag":        true,
						"uuid":              uuid.NewString(),
						"resource_versions": versions,
					},
				}},
		)
		return err
	}
	return errors.Join(
		state("DHCP agent", harness.DHCPHost, nil),
		state("Open vSwitch agent", harness.L2Host, objectVersions),
	)
}

// reportReady sends dhcp_ready_on_ports.
func (a *rpcAgent) reportReady(ctx context.Context, ports []string) error {
	_, err := a.call(ctx, "q-plugin", "dhcp_ready_on_ports", "1.5", harness.Attributes{"port_ids": ports})
	return err
}

// reportUp sends update_device_list and checks that berth accepted every device.
func (a *rpcAgent) reportUp(ctx context.Context, ports []string) error {
	result, err := a.call(ctx, "q-plugin", "update_device_list", "1.9", harness.Attributes{
		"devices_up":      ports,
		"devices_down":    []string{},
		"agent_id":        "ovs-agent-" + harness.L2Host,
		"host":            harness.L2Host,
		"refresh_tunnels": false,
	})
	if err != nil {
		return err
	}
	var done struct {
		Up     []string `json:"devices_up"`
		Failed []string `json:"failed_devices_up"`
	}
	if err := json.Unmarshal(result, &done); err != nil || len(done.Up) != len(ports) ||
		len(done.Failed) > 0 {
		return fmt.Errorf("report %d devices as up: berth answered %s: %w", len(ports), result, err)
	}
	return nil
}

// envelope is oslo.messaging's message envelope, version 2.0.
type envelope struct {
	Version string `json:"oslo.version"`
	Message string `json:"oslo.message"`
}

// call sends an RPC call of a method to a topic, and returns the result of the method.
func (a *rpcAgent) call(
	ctx context.Context,
	topic, method, version string,
	args harness.Attributes,
) (json.RawMessage, error) {
	m := harness.Attributes{
		"method":                 method,
		"args":                   args,
		"version":                version,
		"_msg_id":                hexID(),
		"_reply_q":               a.queue,
		"_timeout":               nil,
		"_unique_id":             hexID(),
		"_context_is_admin":      true,
		"_context_roles":         []string{},
		"_context_request_id":    "req-" + uuid.NewString(),
		"_context_user_identity": "- - - - -",
	}
	for _, null := range []string{"user", "project_id", "system_scope", "project", "domain", "user_domain", "project_domain", "auth_token", "global_request_id", "resource_uuid"} {
		m["_context_"+null] = nil
	}
	inner, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(envelope{"2.0", string(inner)})
	if err != nil {
		return nil, err
	}
	err = a.channel.PublishWithContext(ctx, "neutron", topic, true, false, amqp.Publishing{
		ContentType:     "application/json",
		ContentEncoding: "utf-8",
		DeliveryMode:    amqp.Persistent,
		Headers:         amqp.Table{},
		Expiration:      "60000",
		Body:            body,
	})
	if err != nil {
		return nil, err
	}
	return a.awaitReply(ctx, method)
}

// awaitReply returns the result in the next reply. If the next reply contains a failure, awaitReply returns
// an error.
func (a *rpcAgent) awaitReply(ctx context.Context, method string) (json.RawMessage, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(harness.WaitTimeout):
		return nil, fmt.Errorf("no reply to the RPC call %s: %w", method, harness.ErrTimeout)
	case d, open := <-a.replies:
		var e envelope
		var m struct {
			Result  json.RawMessage `json:"result"`
			Failure *string         `json:"failure"`
		}
		if !open {
			return nil, amqp.ErrClosed
		}
		if err := errors.Join(json.Unmarshal(d.Body, &e), json.Unmarshal([]byte(e.Message), &m)); err != nil {
			return nil, fmt.Errorf("decode the reply to the RPC call %s: %w", method, err)
		}
		if m.Failure != nil {
			return nil, fmt.Errorf("%s failed: %s", method, *m.Failure)
		}
		return m.Result, nil
	}
}

// hexID returns 32 random hexadecimal digits.
func hexID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }
