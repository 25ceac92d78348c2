package rpc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"berth/internal/store/storetest"
)

// In this test, the server gets several invalid messages, which it must drop, and then a valid call, which it
// must answer.
func TestServer_DropsMalformedAndDuplicateMessages(t *testing.T) {
	t.Parallel()
	url := newVirtualHost(t)
	registry := startServer(t, storetest.New(t), url)
	client := newRawClient(t, url)
	bad := []string{
		"", "{", "null", "7", `"text"`, "[]", "{}", `{"oslo.version":"2.0"}`, `{"oslo.version":2,"oslo.message":"{}"}`,
		`{"oslo.version":"3.0","oslo.message":"{}"}`, `{"oslo.version":"2.0","oslo.message":{"method":"x"}}`,
		envelope(""), envelope("null"), envelope("[]"), envelope("{}"),
		envelope(`{"method":7}`), envelope(`{"method":""}`),
		envelope(`{"method":"has_alive_neutron_server","args":{"a":"\u0000"}}`),
		envelope(strings.Repeat("[", 100000)),
		"\xff\xfe", strings.Repeat("a", 10<<20), envelope(`{"method":"` + strings.Repeat("a", 10<<20) + `"}`),
	}
	for _, body := range bad {
		client.send(t, body)
	}
	eventually(t, fmt.Sprintf("%d messages are dropped", len(bad)),
		func() bool { return droppedMessages(t, registry, "malformed") == len(bad) })

	call := func(queue, id string) string {
		return envelope(fmt.Sprintf(
			`{"method":"has_alive_neutron_server","args":{},"version":"1.0","_msg_id":"m","_reply_q":%q,"_unique_id":%q}`,
			queue,
			id,
		))
	}
	client.send(t, call("reply_without_queue", hexID()))
	client.send(t, call(strings.Repeat("q", 300), hexID()))

	const times = 1000
	same := hexID()
	for range times {
		client.send(t, call(client.queue, same))
	}
	eventually(t, "duplicates are dropped",
		func() bool { return droppedMessages(t, registry, "duplicate") == times-1 })

	client.send(t, call(client.queue, hexID()))
	for range 2 { // one reply to all duplicates together, and one reply to the last call
		var e map[string]string
		var m map[string]any
		reply := <-client.replies
		if err := json.Unmarshal(reply.Body, &e); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(e["oslo.message"]), &m); err != nil || m["result"] != true ||
			m["ending"] != true ||
			m["_msg_id"] != "m" ||
			m["failure"] != nil {
			t.Errorf("receive the reply to a call: got %s, want the result true for the message ID m",
				reply.Body)
		}
	}
	if len(client.replies) != 0 {
		t.Error("send a message 1000 times: it got a second reply, want one")
	}
	eventually(t, "the unroutable reply is counted",
		func() bool { return droppedMessages(t, registry, "unwanted") == 1 })
}

// RabbitMQ accepts these messages, but the amqp library cannot read the headers of the first three, and
// RabbitMQ closes a connection that sends a reply to the reply queue of the last two. RabbitMQ delivers a
// message again whose delivery ended the connection.
func TestServer_NoMessageEndsItsConnectionAgainAndAgain(t *testing.T) {
	t.Parallel()
	url := newVirtualHost(t)
	registry := startServer(t, storetest.New(t), url)
	client := newRawClient(t, url)
	call := func(queue string) string {
		return envelope(fmt.Sprintf(
			`{"method":"has_alive_neutron_server","args":{},"version":"1.0","_msg_id":"m","_reply_q":%q,"_unique_id":%q}`,
			queue, hexID(),
		))
	}
	nested, many := amqp.Table{"a": "b"}, amqp.Table{}
	for range 40 {
		nested = amqp.Table{"a": nested}
	}
	for i := range 9000 {
		many[fmt.Sprint(i)] = nil
	}
	hostile := []amqp.Publishing{
		{Headers: nested, Body: []byte(call(""))},
		{Headers: many, Body: []byte(call(""))},
		{Headers: amqp.Table{"a": make([]any, 9000)}, Body: []byte(call(""))},
		{Body: []byte(call("amq.rabbitmq.reply-to.AAAA.BBBB"))},
		{Body: []byte(call("amq.rabbitmq.reply-to.g1gCbQAAAAFhbQAAAAFi.x=="))},
	}
	for _, m := range hostile {
		if err := client.PublishWithContext(t.Context(), "neutron", "q-plugin", false, false, m); err != nil {
			t.Fatal(err)
		}
	}

	client.send(t, call(client.queue))

	if reply := <-client.replies; openEnvelope(t, reply.Body)["result"] != true {
		t.Errorf("call after hostile messages: got %s, want the result true", reply.Body)
	}
	eventually(t, "each message is executed", func() bool { return executedCalls(t, registry) == len(hostile)+1 })
}

// Agents with oslo.messaging 14.9 drop their connection when they receive a message that has no table of
// headers.
func TestServer_MessagesHaveHeaders(t *testing.T) {
	t.Parallel()
	url := newVirtualHost(t)
	startServer(t, storetest.New(t), url)
	client := newRawClient(t, url)
	client.send(t, envelope(fmt.Sprintf(
		`{"method":"has_alive_neutron_server","args":{},"version":"1.0","_msg_id":"m","_reply_q":%q,"_unique_id":%q}`,
		client.queue,
		hexID(),
	)))
	if reply := <-client.replies; reply.Headers == nil {
		t.Errorf("receive a reply: it has no table of headers: %+v", reply)
	}
}

// The test declares the caller's reply queue after RabbitMQ has returned the server's first reply as
// unroutable.
func TestServer_ResendsReplyUntilReplyQueueExists(t *testing.T) {
	t.Parallel()
	url := newVirtualHost(t)
	startServer(t, storetest.New(t), url)
	client, late := newRawClient(t, url), "reply_"+hexID()
	call := `{"method":"has_alive_neutron_server","args":{},"version":"1.0","_msg_id":%q,"_reply_q":%q,"_unique_id":%q}`
	client.send(t, envelope(fmt.Sprintf(call, "early", late, hexID())))
	client.send(t, envelope(fmt.Sprintf(call, "next", client.queue, hexID())))
	<-client.replies // by then the first call is most likely answered

	if _, err := client.QueueDeclare(late, false, true, false, false, nil); err != nil {
		t.Fatal(err)
	}

	answers, err := client.Consume(late, "", true, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case reply := <-answers:
		if !strings.Contains(string(reply.Body), "early") {
			t.Errorf(
				"receive the reply that was sent again: got %s, want the reply to the call with the message ID early",
				reply.Body,
			)
		}
	case <-time.After(maxWait):
		t.Error(
			"declare the reply queue after RabbitMQ returned the first reply: got no reply, want the server to send the reply again",
		)
	}
}

// The server's queue in RabbitMQ is deleted between two calls.
func TestServer_ReconnectsAfterItsQueueIsDeleted(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	port := st.createPorts(t, 1)[0]
	st.call(t, nil, "dhcp_ready_on_ports", "1.5", map[string]any{"port_ids": []string{uuid.NewString()}})
	conn := newRawClient(t, st.url)
	// cancels the server's consumer
	if _, err := conn.QueueDelete("q-plugin", false, false, false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server consumes again", func() bool {
		q, err := newRawClient(t, st.url).QueueDeclarePassive("q-plugin", false, false, false, false, nil)
		return err == nil && q.Consumers > 0
	})
	st.call(t, nil, "dhcp_ready_on_ports", "1.5", map[string]any{"port_ids": []string{port.ID.String()}})
}
