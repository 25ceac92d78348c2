package oslomsg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
)

// prefetch is the maximum number of unacknowledged calls that RabbitMQ delivers to a process.
const prefetch = 32

// ServerOptions configure a Server.
type ServerOptions struct {
	Broker    Broker
	Exchange  string   // the topic exchange: the control_exchange of the agents
	Topics    []string // the topics on which the server takes calls
	Host      string   // of this process: the server takes calls to topic.host as well
	Endpoints []Endpoint
	// ErrorToFailure converts the error of a method to the failure that the caller gets. The server does not call ErrorToFailure for an
	// error that is a *Failure, because the caller gets that *Failure. If the result `transient` is true, the server first repeats the
	// method until the method succeeds or the timeout of the call ends, and then replies.
	ErrorToFailure func(error) (f *Failure, transient bool)
	// InternalFailure returns the failure that the caller gets if a method panics or returns a result that cannot be encoded.
	InternalFailure func(message string) *Failure
	Metrics         prometheus.Registerer // may be nil
}

// Server answers RPC calls over RabbitMQ.
type Server struct {
	options    ServerOptions
	metrics    serverMetrics
	duplicates *duplicateFilter
	connected  atomic.Bool
}

// NewServer returns a server that connects to RabbitMQ when Run is called.
func NewServer(o ServerOptions) *Server {
	s := &Server{options: o, duplicates: newDuplicateFilter(duplicateWindow)}
	s.metrics = newServerMetrics(s.Connected)
	if o.Metrics != nil {
		s.metrics.register(o.Metrics)
	}
	return s
}

// Connected reports whether the server is connected to RabbitMQ and consumes messages from its RPC queues.
func (s *Server) Connected() bool { return s.connected.Load() }

// Run answers calls until ctx ends. When the connection to RabbitMQ is lost, Run reconnects; the number of attempts is not limited. After a
// lost connection, RabbitMQ delivers the unacknowledged calls again, to this process or to another one.
func (s *Server) Run(ctx context.Context) {
	KeepConnected(ctx, "RPC server has no connection to RabbitMQ: calls of agents are not answered", func(ctx context.Context) error {
		defer s.connected.Store(false)
		return s.serve(ctx)
	})
}

// serve answers calls over one connection until the connection or ctx ends.
func (s *Server) serve(ctx context.Context) error {
	conn, err := s.options.Broker.dial("berth rpc")
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
	go s.resendReturnedReplies(ch, ch.NotifyReturn(make(chan amqp.Return)))
	lost := conn.NotifyClose(make(chan *amqp.Error, 1))
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	cancelled := ch.NotifyCancel(make(chan string, queuesPerTopic*len(s.options.Topics)))
	done := make(chan struct{})
	defer close(done)
	calls, err := s.consume(ch, done)
	if err != nil {
		return err
	}
	s.connected.Store(true)
	slog.InfoContext(ctx, "RPC server connected to RabbitMQ")
	var running sync.WaitGroup
	defer running.Wait()
	// A call that is running when ctx ends continues, so that its caller gets a reply. A call that is running when the connection to
	// RabbitMQ ends is cancelled.
	callCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			waitForCalls(&running)
			return ctx.Err()
		case err := <-lost:
			return fmt.Errorf("connection to RabbitMQ lost: %w", closeError(err))
		case err := <-closed:
			return fmt.Errorf("AMQP channel closed: %w", closeError(err))
		case queue := <-cancelled:
			return fmt.Errorf("queue %s was deleted", queue)
		case call := <-calls:
			running.Go(func() { s.handle(callCtx, ch, call) })
		}
	}
}

// shutdownTimeout is how long running calls may still take when the process stops.
const shutdownTimeout = 5 * time.Second

func waitForCalls(running *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(shutdownTimeout):
	}
}

// Time limits for retries. The server retries a method that failed with a transient error, most likely because the database is unavailable.
const (
	maxCallTimeout  = 60 * time.Second
	replyShare      = 10 // a method may use all but a tenth of its call's timeout, so that the caller still gets the reply
	firstRetryPause = 50 * time.Millisecond
	maxRetryPause   = 2 * time.Second
)

// handle executes one call, sends the reply and then acknowledges the call. If the process dies before it has acknowledged the call,
// RabbitMQ delivers the call again.
func (s *Server) handle(ctx context.Context, ch *amqp.Channel, call amqp.Delivery) {
	r, err := decodeRequest(call.Body)
	if err != nil {
		s.metrics.countDrop(dropMalformed)
		slog.WarnContext(ctx, "malformed RPC message dropped", "error", err, "routing_key", call.RoutingKey)
		if r.wantsReply() {
			s.reply(ctx, ch, r, nil, NewTypeError("%s", Truncate(err.Error())))
		}
		s.acknowledge(call)
		return
	}
	if !s.duplicates.addIfNew(r.UniqueID) && !call.Redelivered {
		s.metrics.countDrop(dropDuplicate)
		s.acknowledge(call)
		return
	}
	timeout := callTimeout(call)
	result, failure := s.execute(ctx, r, time.Now().Add(timeout-timeout/replyShare))
	if ctx.Err() != nil {
		return // the connection ended: RabbitMQ delivers the call again
	}
	s.metrics.countCall(r.Method, failure)
	if r.wantsReply() {
		s.reply(ctx, ch, r, result, failure)
	}
	s.acknowledge(call)
}

// callTimeout returns how long the caller waits for the reply: the expiration of the call's message, but at most maxCallTimeout.
func callTimeout(call amqp.Delivery) time.Duration {
	ms, err := strconv.Atoi(call.Expiration)
	if err != nil || ms <= 0 || ms > int(maxCallTimeout/time.Millisecond) {
		return maxCallTimeout
	}
	return time.Duration(ms) * time.Millisecond
}

// execute calls the method that the request names, and repeats the call after each transient error until the deadline. A method that
// still runs at the deadline, for example because the database does not answer, is cancelled.
func (s *Server) execute(ctx context.Context, r request, deadline time.Time) (any, *Failure) {
	m, unknown := findMethod(s.options.Endpoints, r)
	if unknown != nil {
		return nil, unknown
	}
	limited, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for pause := firstRetryPause; ; pause = min(2*pause, maxRetryPause) {
		result, err := s.callMethod(limited, m, r)
		if err == nil {
			return result, nil
		}
		failure, transient := s.failureOf(err)
		if !transient || ctx.Err() != nil {
			return nil, failure
		}
		if time.Now().Add(pause).After(deadline) {
			slog.ErrorContext(ctx, "RPC call failed", "method", r.Method, "error", err)
			return nil, failure
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)): // random, so that many calls do not retry at the same moment
		}
	}
}

// failureOf returns the failure for a method's error. failureOf returns an error that is a *Failure as it is, and converts every other
// error with ErrorToFailure.
func (s *Server) failureOf(err error) (f *Failure, transient bool) {
	if errors.As(err, &f) {
		return f, false
	}
	return s.options.ErrorToFailure(err)
}

// callMethod calls the method once and converts a panic of the method to a failure, so that a panic does not end the other calls of the
// process.
func (s *Server) callMethod(ctx context.Context, m Method, r request) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "RPC method panicked", "method", r.Method, "panic", p)
			result, err = nil, s.options.InternalFailure("An internal error occurred.")
		}
	}()
	return m(ctx, r.Args)
}

func (s *Server) acknowledge(call amqp.Delivery) {
	if err := call.Ack(false); err != nil {
		s.metrics.countDrop(dropUnacknowledged)
	}
}
