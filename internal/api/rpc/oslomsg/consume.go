package oslomsg

import (
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// queuesPerTopic is the number of queues that an RPC server consumes for a topic: a queue that all servers
// share, a queue for the server's own host, and a queue for fanout messages.
const queuesPerTopic = 3

// fanoutSuffix is the end of the name of a topic's fanout exchange, after the topic.
const fanoutSuffix = "_fanout"

// fanoutExpiry is the argument x-expires of a fanout queue: the time in milliseconds after which RabbitMQ
// deletes the queue if it has no consumer. The value of fanoutExpiry is the default in oslo.messaging.
const fanoutExpiry = 1800000

// consume declares the same exchanges and queues as an oslo.messaging server, with the same arguments.
// consume returns a Go channel with the deliveries of all declared queues. The Go channel receives deliveries
// until the AMQP channel or the channel `done` closes.
func (s *Server) consume(ch *amqp.Channel, done <-chan struct{}) (<-chan amqp.Delivery, error) {
	exchange := s.options.Exchange
	if err := ch.ExchangeDeclare(exchange, "topic", false, false, false, false, nil); err != nil {
		return nil, fmt.Errorf("declare exchange %s: %w", exchange, err)
	}
	calls := make(chan amqp.Delivery)
	consumeQueue := func(queue string, args amqp.Table, from, key string) error {
		if _, err := ch.QueueDeclare(queue, false, false, false, false, args); err != nil {
			return fmt.Errorf("declare queue %s: %w", queue, err)
		}
		if err := ch.QueueBind(queue, key, from, false, nil); err != nil {
			return fmt.Errorf("bind queue %s: %w", queue, err)
		}
		source, err := ch.Consume(queue, "", false, false, false, false, nil)
		if err != nil {
			return fmt.Errorf("consume from queue %s: %w", queue, err)
		}
		go forward(source, calls, done)
		return nil
	}
	for _, topic := range s.options.Topics {
		fanout, own := topic+fanoutSuffix, topic+"."+s.options.Host
		if err := ch.ExchangeDeclare(fanout, "fanout", false, true, false, false, nil); err != nil {
			return nil, fmt.Errorf("declare exchange %s: %w", fanout, err)
		}
		err := errors.Join(consumeQueue(topic, nil, exchange, topic), consumeQueue(own, nil, exchange, own),
			consumeQueue(fanout+"_"+newHexID(), amqp.Table{"x-expires": int32(fanoutExpiry)}, fanout, topic))
		if err != nil {
			return nil, err
		}
	}
	return calls, nil
}

// forward forwards deliveries until `source` closes. After the channel `done` has closed, forward drops
// deliveries. RabbitMQ delivers a dropped message again, because the server has not acknowledged the message.
func forward(source <-chan amqp.Delivery, calls chan<- amqp.Delivery, done <-chan struct{}) {
	for call := range source {
		select {
		case calls <- call:
		case <-done:
		}
	}
}
