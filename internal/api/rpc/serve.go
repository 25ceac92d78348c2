package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// serve answers calls over one connection until that ends.
func (s *Server) serve(ctx context.Context) error {
	conn, err := dial(s.options.Brokers, s.next, "berth rpc", s.options.TLS)
	s.next++
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return err
	}
	go s.answerAgain(ch, ch.NotifyReturn(make(chan amqp.Return)))
	lost := conn.NotifyClose(make(chan *amqp.Error, 1))
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	cancelled := ch.NotifyCancel(make(chan string, queues))
	done := make(chan struct{})
	defer close(done)
	calls, err := s.consume(ch, done)
	if err != nil {
		return err
	}
	s.up.Store(true)
	slog.InfoContext(ctx, "answering agents over RabbitMQ")
	var busy sync.WaitGroup
	defer busy.Wait() // the calls in hand end with the connection or are answered before it closes
	// What is begun is answered, even when this process is asked to stop; when the connection is lost, it ends.
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			s.finish(ch, &busy)
			return ctx.Err()
		case err := <-lost:
			return fmt.Errorf("connection lost: %w", orClosed(err))
		case err := <-closed:
			return fmt.Errorf("channel closed: %w", orClosed(err))
		case queue := <-cancelled:
			return fmt.Errorf("the queue %s was taken away", queue)
		case call := <-calls:
			busy.Go(func() { s.handle(working, ch, call) })
		}
	}
}

// Patience with callers that are not there to be answered. After RabbitMQ was away an agent calls over one connection before another,
// on which it is answered, is up again: oslo.messaging tries to reconnect after at most 30 seconds, and servers of it answer again too.
const (
	answerPatience = 30 * time.Second
	answerPause    = 250 * time.Millisecond
	answersWaiting = 1000 // at most: callers that died are many at times
)

// answerAgain sends what found no queue once more after a pause, and counts what nobody has taken, until the channel closes.
func (s *Server) answerAgain(ch *amqp.Channel, returned <-chan amqp.Return) {
	waiting := make(chan struct{}, answersWaiting)
	for r := range returned {
		if time.Since(r.Timestamp) > answerPatience || len(waiting) == cap(waiting) {
			s.counts.drop(unwanted)
			continue
		}
		waiting <- struct{}{}
		time.AfterFunc(answerPause, func() {
			<-waiting
			s.publish(context.Background(), ch, r.RoutingKey, message(r.Body, r.Timestamp))
		})
	}
}

// last is how long the calls in hand have to be answered when the process stops.
const last = 5 * time.Second

func (s *Server) finish(ch *amqp.Channel, busy *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		busy.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(last):
	}
}

func orClosed(err *amqp.Error) error {
	if err == nil {
		return amqp.ErrClosed
	}
	return err
}

// queues is how many queues a server consumes from.
const queues = 6

// fanoutSuffix stands behind the topic in the name of the exchange that hands messages to all who listen to it.
const fanoutSuffix = "_fanout"

// fanoutExpiry is after how many milliseconds without its consumer a queue goes away, as oslo.messaging has it.
const fanoutExpiry = 1800000

// consume declares what a server of oslo.messaging declares, with the same arguments, and takes calls from all of it until
// the channel closes or nobody wants them any more.
func (s *Server) consume(ch *amqp.Channel, done <-chan struct{}) (<-chan amqp.Delivery, error) {
	if err := ch.ExchangeDeclare(exchange, "topic", false, false, false, false, nil); err != nil {
		return nil, fmt.Errorf("declare exchange %s: %w", exchange, err)
	}
	calls := make(chan amqp.Delivery)
	take := func(queue string, args amqp.Table, from, key string) error {
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
	for _, topic := range []string{topicPlugin, topicReports} {
		fanout, own := topic+fanoutSuffix, topic+"."+s.options.Host
		if err := ch.ExchangeDeclare(fanout, "fanout", false, true, false, false, nil); err != nil {
			return nil, fmt.Errorf("declare exchange %s: %w", fanout, err)
		}
		err := errors.Join(take(topic, nil, exchange, topic), take(own, nil, exchange, own),
			take(fanout+"_"+hexID(), amqp.Table{"x-expires": int32(fanoutExpiry)}, fanout, topic))
		if err != nil {
			return nil, err
		}
	}
	return calls, nil
}

// forward hands calls on. What is not wanted any more goes back to the broker with the connection.
func forward(source <-chan amqp.Delivery, calls chan<- amqp.Delivery, done <-chan struct{}) {
	for call := range source {
		select {
		case calls <- call:
		case <-done:
		}
	}
}

// Patience with our own trouble, most likely a database that is away: a call is tried again until its caller waits no more.
const (
	longestCall = 60 * time.Second
	firstRetry  = 50 * time.Millisecond
	lastRetry   = 2 * time.Second
)

// handle answers one call. It acknowledges after the effect is committed and the answer is on its way, over the same channel;
// what dies before is delivered again.
func (s *Server) handle(ctx context.Context, ch *amqp.Channel, call amqp.Delivery) {
	r, err := open(call.Body)
	if err != nil {
		s.counts.drop(malformed)
		slog.WarnContext(ctx, "a message that is no call", "error", err, "queue", call.RoutingKey)
		if r.call() {
			s.answer(ctx, ch, r, nil, badArgument("%s", short(err.Error())))
		}
		s.acknowledge(call)
		return
	}
	if !s.seen.first(r.Unique) && !call.Redelivered {
		s.counts.drop(duplicate)
		s.acknowledge(call)
		return
	}
	result, err := s.perform(ctx, r, time.Now().Add(patienceOf(call)))
	if ctx.Err() != nil {
		return // the connection is lost: the broker has the call still
	}
	s.counts.call(r.Method, err)
	if r.call() {
		s.answer(ctx, ch, r, result, err)
	}
	s.acknowledge(call)
}

// patienceOf is how long the caller waits.
func patienceOf(call amqp.Delivery) time.Duration {
	ms, err := strconv.Atoi(call.Expiration)
	if err != nil || ms <= 0 || ms > int(longestCall/time.Millisecond) {
		return longestCall
	}
	return time.Duration(ms) * time.Millisecond
}

// perform runs the method that is called, again and again if the trouble is ours.
func (s *Server) perform(ctx context.Context, r request, until time.Time) (any, error) {
	m, err := find(r)
	if err != nil {
		return nil, err
	}
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		result, err := s.attempt(ctx, m, r)
		if err == nil || final(err) || ctx.Err() != nil {
			return result, err
		}
		if time.Now().Add(pause).After(until) {
			slog.ErrorContext(ctx, "a call of an agent failed", "method", r.Method, "error", err)
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)): // so that many do not come at once
		}
	}
}

// attempt is one try. A handler that panics must not take the others' calls with it.
func (s *Server) attempt(ctx context.Context, m method, r request) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "a call of an agent panicked", "method", r.Method, "panic", p)
			result, err = nil, failuref(neutronExceptions, "NeutronException", "An internal error occurred.")
		}
	}()
	return m(ctx, s.desk, r.Args)
}

// answer sends a result or failure. That nobody takes it is no matter in the end.
func (s *Server) answer(ctx context.Context, ch *amqp.Channel, r request, result any, failed error) {
	body, err := reply(r, result, failed)
	if err != nil {
		slog.ErrorContext(ctx, "an answer cannot be written", "method", r.Method, "error", err)
		if body, err = reply(r, nil, failuref(neutronExceptions, "NeutronException", "The answer cannot be written.")); err != nil {
			return
		}
	}
	s.publish(ctx, ch, r.ReplyTo, message(body, time.Now()))
}

// publish sends an answer, which comes back if there is no such queue.
func (s *Server) publish(ctx context.Context, ch *amqp.Channel, queue string, m amqp.Publishing) {
	if err := ch.PublishWithContext(ctx, "", queue, true, false, m); err != nil {
		s.counts.drop(unanswered)
	}
}

// message is a body with the properties that oslo.messaging gives it, and the time at which it was first sent.
func message(body []byte, sent time.Time) amqp.Publishing {
	return amqp.Publishing{ContentType: "application/json", ContentEncoding: "utf-8", DeliveryMode: amqp.Persistent, Headers: amqp.Table{}, Body: body, Timestamp: sent}
}

func (s *Server) acknowledge(call amqp.Delivery) {
	if err := call.Ack(false); err != nil {
		s.counts.drop(unacknowledged)
	}
}
