package oslomsg

import (
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// queuesPerTopic is how many queues a server consumes for a topic: shared, own host, fanout.
const queuesPerTopic = 3

// fanoutSuffix follows the topic in the name of its fanout exchange.
const fanoutSuffix = "_fanout"

// fanoutExpiry is x-expires of a fanout queue without a consumer, in milliseconds; oslo.messaging's default.
const fanoutExpiry = 1800000

// consume declares the exchanges and queues of an oslo.messaging server with the same arguments, and returns the deliveries of
// all queues until the channel or done closes.
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
			return fmt.Errorf("consume from %s: %w", queue, err)
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

// forward forwards deliveries until the source or done closes. RabbitMQ delivers again what was not forwarded, because it was
// not acknowledged.
func forward(source <-chan amqp.Delivery, calls chan<- amqp.Delivery, done <-chan struct{}) {
	for call := range source {
		select {
		case calls <- call:
		case <-done:
		}
	}
}
