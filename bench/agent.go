package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
)

// agent speaks as Neutron's DHCP and Open vSwitch agents were recorded: calls that wait for their answer, and ears for what both
// are told.
type agent struct {
	conn    *amqp.Connection
	channel *amqp.Channel
	queue   string // for answers
	replies <-chan amqp.Delivery
}

// newAgent connects an agent, and has it listen.
func newAgent(url string) (*agent, error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return nil, fmt.Errorf("connect with RabbitMQ: %w", err)
	}
	a := &agent{conn: conn, queue: "reply_" + hexID()}
	if a.channel, err = conn.Channel(); err == nil {
		err = a.listen()
	}
	if err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

func (a *agent) close() { _ = a.conn.Close() }

func (a *agent) listen() (err error) {
	expires := amqp.Table{"x-expires": int32(1800000)}
	if _, err = a.channel.QueueDeclare(a.queue, false, false, false, false, expires); err != nil {
		return err
	}
	if a.replies, err = a.channel.Consume(a.queue, "", true, false, false, false, nil); err != nil {
		return err
	}
	own := "dhcp_agent." + dhcpHost
	err = errors.Join(a.channel.ExchangeDeclare("neutron", "topic", false, false, false, false, nil), a.hear(own, nil, "neutron", own))
	for kind, version := range objectVersions {
		topic := "neutron-vo-" + kind + "-" + version
		err = errors.Join(err, a.channel.ExchangeDeclare(topic+"_fanout", "fanout", false, true, false, false, nil),
			a.hear(topic+"_fanout_"+hexID(), expires, topic+"_fanout", topic))
	}
	return err
}

// hear takes what comes to a queue, and does nothing with it.
func (a *agent) hear(queue string, args amqp.Table, from, key string) error {
	if _, err := a.channel.QueueDeclare(queue, false, false, false, false, args); err != nil {
		return err
	}
	if err := a.channel.QueueBind(queue, key, from, false, nil); err != nil {
		return err
	}
	told, err := a.channel.Consume(queue, "", true, false, false, false, nil)
	if err != nil {
		return err
	}
	go func() {
		for range told { // until the channel closes
		}
	}()
	return nil
}

// objectVersions are those of an Open vSwitch agent of Debian 12.
var objectVersions = map[string]string{"Port": "1.7", "Subnet": "1.1", "Network": "1.1", "SecurityGroup": "1.5", "SecurityGroupRule": "1.2"}

// start tells that both agents are there.
func (a *agent) start(ctx context.Context) error {
	state := func(kind, host string, versions map[string]string) error {
		_, err := a.call(ctx, "q-reports-plugin", "report_state", "1.2", attributes{"time": time.Now().UTC().Format("2006-01-02T15:04:05.000000"),
			"agent_state": attributes{"agent_state": attributes{"agent_type": kind, "host": host, "binary": "bench", "topic": "N/A",
				"configurations": attributes{}, "start_flag": true, "uuid": uuid.NewString(), "resource_versions": versions}}})
		return err
	}
	return errors.Join(state("DHCP agent", dhcpHost, nil), state("Open vSwitch agent", l2Host, objectVersions))
}

// ready reports that these ports are served.
func (a *agent) ready(ctx context.Context, ports []string) error {
	_, err := a.call(ctx, "q-plugin", "dhcp_ready_on_ports", "1.5", attributes{"port_ids": ports})
	return err
}

// up reports that these devices are wired.
func (a *agent) up(ctx context.Context, ports []string) error {
	result, err := a.call(ctx, "q-plugin", "update_device_list", "1.9", attributes{"devices_up": ports, "devices_down": []string{},
		"agent_id": "ovs-agent-" + l2Host, "host": l2Host, "refresh_tunnels": false})
	if err != nil {
		return err
	}
	var done struct {
		Up     []string `json:"devices_up"`
		Failed []string `json:"failed_devices_up"`
	}
	if err := json.Unmarshal(result, &done); err != nil || len(done.Up) != len(ports) || len(done.Failed) > 0 {
		return fmt.Errorf("reported %d devices up, and got %s: %w", len(ports), result, err)
	}
	return nil
}

// envelope is what every message is wrapped in.
type envelope struct {
	Version string `json:"oslo.version"`
	Message string `json:"oslo.message"`
}

// call calls a method and waits for what comes of it.
func (a *agent) call(ctx context.Context, topic, method, version string, args attributes) (json.RawMessage, error) {
	m := attributes{"method": method, "args": args, "version": version, "_msg_id": hexID(), "_reply_q": a.queue, "_timeout": nil, "_unique_id": hexID(),
		"_context_is_admin": true, "_context_roles": []string{}, "_context_request_id": "req-" + uuid.NewString(), "_context_user_identity": "- - - - -"}
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
	err = a.channel.PublishWithContext(ctx, "neutron", topic, true, false, amqp.Publishing{ContentType: "application/json", ContentEncoding: "utf-8",
		DeliveryMode: amqp.Persistent, Headers: amqp.Table{}, Expiration: "60000", Body: body})
	if err != nil {
		return nil, err
	}
	return a.answer(ctx, method)
}

func (a *agent) answer(ctx context.Context, method string) (json.RawMessage, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(patience):
		return nil, fmt.Errorf("%s is not answered: %w", method, errLate)
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
			return nil, fmt.Errorf("the answer to %s: %w", method, err)
		}
		if m.Failure != nil {
			return nil, fmt.Errorf("%s failed: %s", method, *m.Failure)
		}
		return m.Result, nil
	}
}

// hexID is 32 hexadecimal digits by chance.
func hexID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }
