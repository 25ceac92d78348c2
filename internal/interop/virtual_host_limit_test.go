package interop

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"berth/internal/devstack"
)

// All virtual hosts share the memory, the disk and the connections of the broker. The test acts as a host
// that wants all of them, in a virtual host that the commands of docs/agents.md have created.
func TestVirtualHost_TakesALimitedPartOfTheBroker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broker, err := devstack.StartRabbitMQ(t.Context(), dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Kill)
	h := &greedyHost{url: addVirtualHost(t, broker, "cmp-1")}
	h.checkNames(t)
	h.checkMessages(t)
	h.checkStream(t, dir)
	h.checkQueues(t)
	h.checkChannels(t)
	h.checkConnections(t)
}

// greedyHost is a host that wants more of the broker than its agents need.
type greedyHost struct{ url string }

func (h *greedyHost) open(t *testing.T) (*amqp.Connection, *amqp.Channel, error) {
	t.Helper()
	conn, err := amqp.Dial(h.url)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	return conn, ch, err
}

func (h *greedyHost) channel(t *testing.T) *amqp.Channel {
	t.Helper()
	_, ch, err := h.open(t)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// checkNames checks that the host reaches only exchanges and queues with the names of Neutron's agents.
func (h *greedyHost) checkNames(t *testing.T) {
	t.Helper()
	for what, use := range map[string]func(*amqp.Channel) error{
		"declare a queue with another name": func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare("other", false, false, false, false, nil)
			return err
		},
		"declare the queue of berth's calls": func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare("q-plugin", false, false, false, false, nil)
			return err
		},
		"delete the queue of berth's calls": func(ch *amqp.Channel) error {
			_, err := ch.QueueDelete("q-plugin", false, false, false)
			return err
		},
		"declare an exchange with another name": func(ch *amqp.Channel) error {
			return ch.ExchangeDeclare("other", "topic", false, false, false, false, nil)
		},
		"bind a queue to an exchange of RabbitMQ": func(ch *amqp.Channel) error {
			if _, err := ch.QueueDeclare("reply_0", false, false, false, false, nil); err != nil {
				t.Errorf("declare the queue of an agent: %v", err)
			}
			return ch.QueueBind("reply_0", "#", "amq.topic", false, nil)
		},
	} {
		err := use(h.channel(t))
		if refused := new(amqp.Error); !errors.As(err, &refused) || refused.Code != amqp.AccessRefused {
			t.Errorf("%s: got error %v, want %d", what, err, amqp.AccessRefused)
		}
	}
}

// checkMessages checks how many messages, and bytes in their bodies, a queue keeps.
func (h *greedyHost) checkMessages(t *testing.T) {
	t.Helper()
	ch := h.channel(t)
	flood(t, ch, "reply_bytes", nil, 100, 1<<20)
	flood(t, ch, "reply_number", nil, 25_000, 0)
	for queue, most := range map[string]int{"reply_bytes": 64, "reply_number": 20_000} {
		q, err := ch.QueueDeclarePassive(queue, false, false, false, false, nil)
		if err != nil || q.Messages == 0 || q.Messages > most {
			t.Errorf("queue %s that got too many messages: it keeps %d of them, error %v; want at most %d",
				queue, q.Messages, err, most)
		}
	}
}

// flood declares a queue, sends messages of a size to it, and waits until the broker has confirmed all.
func flood(t *testing.T, ch *amqp.Channel, queue string, args amqp.Table, messages, size int) {
	t.Helper()
	_, isStream := args["x-queue-type"]
	_, err := ch.QueueDeclare(queue, isStream, false, false, false, args)
	if err == nil {
		err = ch.ExchangeDeclare("neutron", "topic", false, false, false, false, nil)
	}
	if err == nil {
		err = ch.QueueBind(queue, queue, "neutron", false, nil)
	}
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		t.Fatal(err)
	}
	body, unconfirmed := make([]byte, size), make([]*amqp.DeferredConfirmation, messages)
	for i := range unconfirmed {
		unconfirmed[i], err = ch.PublishWithDeferredConfirmWithContext(t.Context(), "neutron", queue, true, false,
			amqp.Publishing{Body: body})
		if err != nil {
			t.Fatalf("publish message %d to the queue %s: %v", i, queue, err)
		}
	}
	for i, sent := range unconfirmed {
		if !sent.Wait() {
			t.Fatalf("publish message %d to the queue %s: the broker has not confirmed it", i, queue)
		}
	}
}

// checkStream checks how much of the disk a stream takes. A stream has no limit of messages, and its client
// chooses the size of the files, of which the broker never deletes the last one.
func (h *greedyHost) checkStream(t *testing.T, dir string) {
	t.Helper()
	flood(t, h.channel(t), "reply_stream", amqp.Table{
		"x-queue-type":                    "stream",
		"x-stream-max-segment-size-bytes": int64(1 << 30),
	}, 150, 1<<20)
	const most = 96 << 20 // 64 MiB, and the last file
	var size int64
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		// the broker deletes old files in the background
		if size = streamBytes(t, dir); size <= most {
			break
		}
	}
	if size == 0 || size > most {
		t.Errorf("stream that got 150 messages of 1 MiB: it takes %d bytes of the disk, want at most %d", size, most)
	}
}

// streamBytes returns the size of the files with the messages of the stream.
func streamBytes(t *testing.T, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
			return nil
		}
		if err != nil || !strings.HasSuffix(name, ".segment") || !strings.Contains(name, "reply_stream") {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

func (h *greedyHost) checkQueues(t *testing.T) {
	t.Helper()
	ch := h.channel(t)
	queues := 0
	for err := error(nil); err == nil && queues < 1000; {
		if _, err = ch.QueueDeclare(fmt.Sprintf("reply_%d", queues), false, false, false, false, nil); err == nil {
			queues++
		}
	}
	if queues >= 1000 {
		t.Errorf("queues of the virtual host: it has %d, want a limit", queues)
	}
}

func (h *greedyHost) checkChannels(t *testing.T) {
	t.Helper()
	conn, _, err := h.open(t)
	if err != nil {
		t.Fatal(err)
	}
	channels := 1
	for ; err == nil && channels < 1000; channels++ {
		_, err = conn.Channel()
	}
	if err == nil {
		t.Errorf("channels of the user: it has %d, want a limit", channels)
	}
}

func (h *greedyHost) checkConnections(t *testing.T) {
	t.Helper()
	connections := 0
	var err error
	for ; err == nil && connections < 200; connections++ {
		var conn *amqp.Connection
		if conn, err = amqp.Dial(h.url); err == nil {
			t.Cleanup(func() { _ = conn.Close() })
		}
	}
	if refused := new(amqp.Error); !errors.As(err, &refused) {
		t.Errorf("open %d connections to the virtual host: got error %v, want a limit", connections, err)
	}
}
