package interop

import (
	"errors"
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"berth/internal/devstack"
)

// All virtual hosts share the memory, the disk and the connections of the broker. The test acts as a host
// that wants all of them, in a virtual host that the commands of docs/agents.md have created.
func TestVirtualHost_TakesALimitedPartOfTheBroker(t *testing.T) {
	t.Parallel()
	broker, err := devstack.StartRabbitMQ(t.Context(), t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Kill)
	url := addVirtualHost(t, broker, "cmp-1")
	open := func() (*amqp.Channel, error) {
		conn, err := amqp.Dial(url)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn.Channel()
	}
	ch, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("flood", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		sent, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", "flood", false, false,
			amqp.Publishing{Body: make([]byte, 1<<20)})
		if err != nil || !sent.Wait() {
			t.Fatalf("publish a message of 1 MiB: it is not confirmed, error %v", err)
		}
	}
	q, err := ch.QueueDeclarePassive("flood", false, false, false, false, nil)
	if err != nil || q.Messages > 64 {
		t.Errorf("queue that got 100 messages of 1 MiB: it keeps %d of them, error %v; want at most 64",
			q.Messages, err)
	}

	queues := 0
	for err == nil && queues < 1000 {
		if _, err = ch.QueueDeclare(fmt.Sprintf("q%d", queues), false, false, false, false, nil); err == nil {
			queues++
		}
	}
	if queues >= 1000 {
		t.Errorf("queues of the virtual host: it has %d, want a limit", queues)
	}

	connections := 1
	for err = nil; err == nil && connections < 200; connections++ {
		_, err = open()
	}
	refused := new(amqp.Error)
	if !errors.As(err, &refused) {
		t.Errorf("open %d connections to the virtual host: got error %v, want a limit", connections, err)
	}
}
