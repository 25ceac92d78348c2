package rpc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"

	"berth/internal/store/storetest"
)

// rawClient sends any bytes.
type rawClient struct {
	*amqp.Channel
	replies <-chan amqp.Delivery
	queue   string
}

func newRawClient(t *testing.T, url string) *rawClient {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	q, err := ch.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	replies, err := ch.Consume(q.Name, "", true, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &rawClient{ch, replies, q.Name}
}

func (r *rawClient) send(t *testing.T, body string) {
	t.Helper()
	if err := r.PublishWithContext(t.Context(), "neutron", "q-plugin", false, false, amqp.Publishing{Body: []byte(body), Expiration: "600000"}); err != nil {
		t.Fatal(err)
	}
}

func envelope(message string) string {
	text, _ := json.Marshal(map[string]string{"oslo.version": "2.0", "oslo.message": message})
	return string(text)
}

// droppedMessages returns how many messages the server dropped for a reason.
func droppedMessages(t *testing.T, registry *prometheus.Registry, reason string) int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "berth_rpc_dropped_total" && m.GetLabel()[0].GetValue() == reason {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	return 0
}

// The server drops invalid messages and then answers a valid one.
func TestServer_DropsMalformedAndDuplicateMessages(t *testing.T) {
	t.Parallel()
	url := newVirtualHost(t)
	registry := startServer(t, storetest.New(t), url)
	client := newRawClient(t, url)
	bad := []string{
		"", "{", "null", "7", `"text"`, "[]", "{}", `{"oslo.version":"2.0"}`, `{"oslo.version":2,"oslo.message":"{}"}`,
		`{"oslo.version":"3.0","oslo.message":"{}"}`, `{"oslo.version":"2.0","oslo.message":{"method":"x"}}`,
		envelope(""), envelope("null"), envelope("[]"), envelope("{}"), envelope(`{"method":7}`), envelope(`{"method":""}`),
		envelope(`{"method":"has_alive_neutron_server","args":{"a":"\u0000"}}`), envelope(strings.Repeat("[", 100000)),
		"\xff\xfe", strings.Repeat("a", 10<<20), envelope(`{"method":"` + strings.Repeat("a", 10<<20) + `"}`),
	}
	for _, body := range bad {
		client.send(t, body)
	}
	eventually(t, fmt.Sprintf("%d messages are dropped", len(bad)), func() bool { return droppedMessages(t, registry, "malformed") == len(bad) })

	call := func(queue, id string) string {
		return envelope(fmt.Sprintf(`{"method":"has_alive_neutron_server","args":{},"version":"1.0","_msg_id":"m","_reply_q":%q,"_unique_id":%q}`, queue, id))
	}
	client.send(t, call("reply_without_queue", hexID()))
	client.send(t, call(strings.Repeat("q", 300), hexID()))

	const times = 1000
	same := hexID()
	for range times {
		client.send(t, call(client.queue, same))
	}
	eventually(t, "duplicates are dropped", func() bool { return droppedMessages(t, registry, "duplicate") == times-1 })

	client.send(t, call(client.queue, hexID()))
	for range 2 { // one reply for all duplicates, one for the last call
		var e map[string]string
		var m map[string]any
		reply := <-client.replies
		if err := json.Unmarshal(reply.Body, &e); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(e["oslo.message"]), &m); err != nil || m["result"] != true || m["ending"] != true || m["_msg_id"] != "m" || m["failure"] != nil {
			t.Errorf("the reply is %s", reply.Body)
		}
	}
	if len(client.replies) != 0 {
		t.Error("a duplicate got a reply")
	}
	eventually(t, "the unroutable reply is counted", func() bool { return droppedMessages(t, registry, "unwanted") == 1 })
}

// The reply queue is declared after the first reply was returned as unroutable.
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
			t.Errorf("the reply is %s", reply.Body)
		}
	case <-time.After(maxWait):
		t.Error("no reply")
	}
}

func hexID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }

// RabbitMQ deletes the server's queue between two calls.
func TestServer_ReconnectsAfterItsQueueIsDeleted(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	port := st.createPorts(t, 1)[0]
	st.call(t, nil, "dhcp_ready_on_ports", "1.5", map[string]any{"port_ids": []string{uuid.NewString()}})
	conn := newRawClient(t, st.url)
	if _, err := conn.QueueDelete("q-plugin", false, false, false); err != nil { // cancels the server's consumer
		t.Fatal(err)
	}
	eventually(t, "the server consumes again", func() bool {
		q, err := newRawClient(t, st.url).QueueDeclarePassive("q-plugin", false, false, false, false, nil)
		return err == nil && q.Consumers > 0
	})
	st.call(t, nil, "dhcp_ready_on_ports", "1.5", map[string]any{"port_ids": []string{port.ID.String()}})
}
