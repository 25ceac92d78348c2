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

// raw is a client that may send anything.
type raw struct {
	*amqp.Channel
	replies <-chan amqp.Delivery
	queue   string
}

func newRaw(t *testing.T, url string) *raw {
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
	return &raw{ch, replies, q.Name}
}

func (r *raw) send(t *testing.T, body string) {
	t.Helper()
	if err := r.PublishWithContext(t.Context(), "neutron", "q-plugin", false, false, amqp.Publishing{Body: []byte(body), Expiration: "60000"}); err != nil {
		t.Fatal(err)
	}
}

func sealed(message string) string {
	text, _ := json.Marshal(map[string]string{"oslo.version": "2.0", "oslo.message": message})
	return string(text)
}

// dropped is how many messages came to nothing for a reason.
func dropped(t *testing.T, registry *prometheus.Registry, reason string) int {
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

// TestNothingStopsTheQueue sends what no agent should, and then asks as one does.
func TestNothingStopsTheQueue(t *testing.T) {
	t.Parallel()
	url := virtualHost(t)
	registry := serve(t, storetest.New(t), url)
	client := newRaw(t, url)
	bad := []string{
		"", "{", "null", "7", `"text"`, "[]", "{}", `{"oslo.version":"2.0"}`, `{"oslo.version":2,"oslo.message":"{}"}`,
		`{"oslo.version":"3.0","oslo.message":"{}"}`, `{"oslo.version":"2.0","oslo.message":{"method":"x"}}`,
		sealed(""), sealed("null"), sealed("[]"), sealed("{}"), sealed(`{"method":7}`), sealed(`{"method":""}`),
		sealed(`{"method":"has_alive_neutron_server","args":{"a":"\u0000"}}`), sealed(strings.Repeat("[", 100000)),
		"\xff\xfe", strings.Repeat("a", 10<<20), sealed(`{"method":"` + strings.Repeat("a", 10<<20) + `"}`),
	}
	for _, body := range bad {
		client.send(t, body)
	}
	eventually(t, fmt.Sprintf("%d messages are dropped", len(bad)), func() bool { return dropped(t, registry, "malformed") == len(bad) })

	call := func(queue, id string) string {
		return sealed(fmt.Sprintf(`{"method":"has_alive_neutron_server","args":{},"version":"1.0","_msg_id":"m","_reply_q":%q,"_unique_id":%q}`, queue, id))
	}
	client.send(t, call("reply_that_is_nobodys", hex()))
	client.send(t, call(strings.Repeat("q", 300), hex()))

	const times = 1000
	same := hex()
	for range times {
		client.send(t, call(client.queue, same))
	}
	eventually(t, "duplicates are dropped", func() bool { return dropped(t, registry, "duplicate") == times-1 })

	client.send(t, call(client.queue, hex()))
	for range 2 { // of the thousand, and of the last
		var e map[string]string
		var m map[string]any
		reply := <-client.replies
		if err := json.Unmarshal(reply.Body, &e); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(e["oslo.message"]), &m); err != nil || m["result"] != true || m["ending"] != true || m["_msg_id"] != "m" || m["failure"] != nil {
			t.Errorf("the answer is %s", reply.Body)
		}
	}
	if len(client.replies) != 0 {
		t.Error("a duplicate was answered")
	}
	eventually(t, "the answer that nobody takes is counted", func() bool { return dropped(t, registry, "unwanted") == 1 })
}

// TestCallersThatComeBackLateAreAnswered has the queue for the answer made when the answer has been there already.
func TestCallersThatComeBackLateAreAnswered(t *testing.T) {
	t.Parallel()
	url := virtualHost(t)
	serve(t, storetest.New(t), url)
	client, late := newRaw(t, url), "reply_"+hex()
	call := `{"method":"has_alive_neutron_server","args":{},"version":"1.0","_msg_id":%q,"_reply_q":%q,"_unique_id":%q}`
	client.send(t, sealed(fmt.Sprintf(call, "early", late, hex())))
	client.send(t, sealed(fmt.Sprintf(call, "next", client.queue, hex())))
	<-client.replies // the first is most likely answered before the second

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
			t.Errorf("the answer is %s", reply.Body)
		}
	case <-time.After(patience):
		t.Error("no answer")
	}
}

func hex() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }

// TestCallsOutlastTheConnection has the broker take the queue away between two calls.
func TestCallsOutlastTheConnection(t *testing.T) {
	t.Parallel()
	st := newSite(t)
	port := st.ports(t, 1)[0]
	st.call(t, nil, "dhcp_ready_on_ports", "1.5", map[string]any{"port_ids": []string{uuid.NewString()}})
	conn := newRaw(t, st.url)
	if _, err := conn.QueueDelete("q-plugin", false, false, false); err != nil { // the broker takes the queue away from its consumers
		t.Fatal(err)
	}
	eventually(t, "the server is back", func() bool {
		q, err := newRaw(t, st.url).QueueDeclarePassive("q-plugin", false, false, false, false, nil)
		return err == nil && q.Consumers > 0
	})
	st.call(t, nil, "dhcp_ready_on_ports", "1.5", map[string]any{"port_ids": []string{port.ID.String()}})
}
