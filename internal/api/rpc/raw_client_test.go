package rpc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
)

// rawClient is an AMQP client that sends arbitrary bytes to the server.
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

// droppedMessages returns the number of messages that the server dropped for the given reason.
func droppedMessages(t *testing.T, registry *prometheus.Registry, reason string) int {
	t.Helper()
	return int(counters(t, registry, "berth_rpc_dropped_total")[reason])
}

// counters returns the sums of a counter by the value of its first label, or by "" if it has no labels.
func counters(t *testing.T, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			label := ""
			if labels := m.GetLabel(); len(labels) > 0 {
				label = labels[0].GetValue()
			}
			sums[label] += m.GetCounter().GetValue()
		}
	}
	return sums
}

func hexID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }

func openEnvelope(t *testing.T, body []byte) (m map[string]any) {
	t.Helper()
	var e map[string]string
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(e["oslo.message"]), &m); err != nil {
		t.Fatal(err)
	}
	return m
}
