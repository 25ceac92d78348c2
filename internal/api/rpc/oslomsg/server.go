package oslomsg

import (
	"context"
	"encoding/json"
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
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"berth/internal/panics"
)

// prefetch is the maximum number of unacknowledged calls that RabbitMQ delivers to a server.
const prefetch = 32

// Sizes for a server that InVirtualHost returns. They are small, because a process may have such a server for
// each of hundreds of hosts.
const (
	virtualHostPrefetch        = 8
	virtualHostDuplicateWindow = 256
)

// ServerOptions configure a Server.
type ServerOptions struct {
	Broker    Broker
	Exchange  string   // the topic exchange: the control_exchange of the agents
	Topics    []string // the topics on which the server takes calls
	Host      string   // host of this process: the server also takes calls to the topic TOPIC.HOST
	Endpoints []Endpoint
	// ErrorToFailure converts the error of a method to the failure that the caller gets, and says how long
	// the server repeats the method. The server does not call ErrorToFailure for an error that is a *Failure,
	// because the caller gets that *Failure.
	ErrorToFailure func(error) (*Failure, Repetition)
	// MaxCallTime is the maximum time for a call. It is also the time for a call whose message has no
	// expiration. 0: one minute.
	MaxCallTime time.Duration
	// InternalFailure returns the failure that the caller gets if a method panics or returns a result that
	// cannot be encoded.
	InternalFailure func(message string) *Failure
	Metrics         prometheus.Registerer // may be nil
	Observe         Observer              // may be nil
}

// Call describes a call or cast to an Observer.
type Call struct {
	Method      string
	Traceparent string // header traceparent of the message; empty: none
	RequestID   string // request ID in the sender's request context; empty: none
}

// Observer is called before each call or cast whose message is well-formed. The call runs with the context
// that Observer returns. The returned function is called after the call, with the class of its failure;
// empty: the call succeeded.
type Observer func(context.Context, Call) (context.Context, func(failure string))

// Repetition says how long the server repeats a method that has failed.
type Repetition int

// The values of a Repetition.
const (
	// NoRepetition is for errors that do not depend on the time.
	NoRepetition Repetition = iota
	// UntilDeadline repeats the method until the timeout of the call ends.
	UntilDeadline
	// UntilSuccess also repeats the method until the timeout of the call ends, and then returns a cast to its
	// queue, because the sender of a cast waits for no reply and does not send the cast again. UntilSuccess
	// is only for errors that certainly do not depend on the content of the message: a cast whose content
	// causes the error would go back to its queue for ever.
	UntilSuccess
)

// Server answers RPC calls over RabbitMQ.
type Server struct {
	options    ServerOptions
	broker     Broker
	prefetch   int
	metrics    serverMetrics
	duplicates *duplicateFilter
	limits     *replyLimits
	rate       *rate.Limiter
	large      *semaphore.Weighted // one call that builds a large reply
	connected  atomic.Bool
}

// NewServer returns a server that connects to RabbitMQ when Run is called.
func NewServer(o ServerOptions) *Server {
	if o.MaxCallTime == 0 {
		o.MaxCallTime = maxCallTime
	}
	s := &Server{
		options:    o,
		broker:     o.Broker,
		prefetch:   prefetch,
		metrics:    newServerMetrics(),
		duplicates: newDuplicateFilter(duplicateWindow),
		limits:     newReplyLimits(),
		rate:       rate.NewLimiter(rate.Inf, 0),
		large:      semaphore.NewWeighted(1),
	}
	if o.Metrics != nil {
		s.metrics.register(o.Metrics)
	}
	return s
}

// InVirtualHost returns a server for calls in another virtual host of the same brokers, which answers them
// with its own methods. The returned server has the same options, metrics and limits of replies as s.
// Messages beyond the limit wait in their queue.
func (s *Server) InVirtualHost(name string, endpoints []Endpoint, limit *rate.Limiter) *Server {
	o := s.options
	o.Broker.VirtualHost, o.Endpoints = name, endpoints
	return &Server{
		options:    o,
		broker:     o.Broker,
		prefetch:   virtualHostPrefetch,
		metrics:    s.metrics,
		duplicates: newDuplicateFilter(virtualHostDuplicateWindow),
		limits:     s.limits,
		rate:       limit,
		large:      semaphore.NewWeighted(1),
	}
}

// Connected reports whether the server is connected to RabbitMQ and consumes messages from its RPC queues.
func (s *Server) Connected() bool { return s.connected.Load() }

// Run answers calls until ctx ends. When the connection to RabbitMQ is lost, Run reconnects; the number of
// attempts is not limited. After a lost connection, RabbitMQ delivers the unacknowledged calls again, to this
// process or to another one.
func (s *Server) Run(ctx context.Context) {
	KeepConnected(
		ctx,
		"RPC server has no connection to RabbitMQ: calls of agents are not answered",
		func(ctx context.Context) error {
			defer s.connected.Store(false)
			return s.serve(ctx)
		},
	)
}

// serve answers calls over one connection until the connection or ctx ends.
func (s *Server) serve(ctx context.Context) error {
	conn, err := s.broker.dial(ctx, "berth rpc")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(s.prefetch, 0, false); err != nil {
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
	slog.InfoContext(ctx, "RPC server connected to RabbitMQ", "virtual_host", s.broker.VirtualHost)
	var running sync.WaitGroup
	defer running.Wait()
	// A call that is running when ctx ends continues, so that its caller gets a reply. A call that is running
	// when the connection to RabbitMQ ends is cancelled.
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
			return fmt.Errorf("AMQP channel closed: %w", s.limits.learnFrom(ctx, err))
		case queue := <-cancelled:
			return fmt.Errorf("queue %s was deleted", queue)
		case call := <-calls:
			running.Go(func() { s.handleInTurn(ctx, callCtx, ch, call) })
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

// Time limits for retries. The server retries a method that failed with a transient error, most likely
// because the database is unavailable.
const (
	maxCallTime = 60 * time.Second
	// a method may use all but a tenth of its call's timeout, so that the caller still gets the reply
	replyShare      = 10
	firstRetryPause = 50 * time.Millisecond
	maxRetryPause   = 2 * time.Second
)

// handleInTurn handles a call when the rate allows it. If ctx or callCtx ends before, handleInTurn does
// nothing, and RabbitMQ delivers the call again.
func (s *Server) handleInTurn(ctx, callCtx context.Context, ch *amqp.Channel, call amqp.Delivery) {
	waiting, stop := context.WithCancel(callCtx)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	if s.rate.Wait(waiting) == nil {
		s.handle(callCtx, ch, call)
	}
}

// handle executes one call, sends the reply and then acknowledges the call. If the process dies before it has
// acknowledged the call, RabbitMQ delivers the call again. A cast that the server could not execute because
// the database is unavailable goes back to its queue.
func (s *Server) handle(ctx context.Context, ch *amqp.Channel, call amqp.Delivery) {
	r, err := decodeRequest(call.Body)
	if err != nil {
		s.metrics.countDrop(dropMalformed)
		slog.WarnContext(ctx, "malformed RPC message dropped", "error", err, "routing_key", call.RoutingKey)
		if r.wantsReply() {
			s.reply(ctx, ch, r, nil, NewTypeError("%s", Excerpt(err.Error())))
		}
		s.acknowledge(call)
		return
	}
	if !s.duplicates.addIfNew(r.UniqueID) && !call.Redelivered {
		s.metrics.countDrop(dropDuplicate)
		s.acknowledge(call)
		return
	}
	timeout := s.callTimeout(call)
	observed, ended := s.observe(ctx, call, r)
	place := &largeReply{server: s}
	defer place.release()
	observed = context.WithValue(observed, largeReplyKey{}, place)
	result, failure, repetition := s.execute(observed, r, time.Now().Add(timeout-timeout/replyShare))
	ended(failure.className())
	if ctx.Err() != nil {
		return // the connection ended: RabbitMQ delivers the call again
	}
	s.metrics.countCall(r.Method, failure)
	switch {
	case r.wantsReply():
		s.reply(ctx, ch, r, result, failure)
	case repetition == UntilSuccess:
		_ = call.Nack(false, true) // if the connection has ended, RabbitMQ delivers the cast again, too
		return
	}
	s.acknowledge(call)
}

// observe passes a call to the Observer.
func (s *Server) observe(
	ctx context.Context,
	call amqp.Delivery,
	r request,
) (context.Context, func(failure string)) {
	if s.options.Observe == nil {
		return ctx, func(string) {}
	}
	traceparent, _ := call.Headers[traceparentHeader].(string)
	var id string
	_ = json.Unmarshal(r.RequestID, &id)
	return s.options.Observe(ctx, Call{Method: r.Method, Traceparent: traceparent, RequestID: id})
}

// callTimeout returns how long the caller waits for the reply: the expiration of the call's message, but at
// most MaxCallTime. If the message has no expiration, callTimeout returns MaxCallTime.
func (s *Server) callTimeout(call amqp.Delivery) time.Duration {
	ms, err := strconv.Atoi(call.Expiration)
	if err != nil || ms <= 0 || ms > int(s.options.MaxCallTime/time.Millisecond) {
		return s.options.MaxCallTime
	}
	return time.Duration(ms) * time.Millisecond
}

// execute calls the method that the request names, and repeats the call after each transient error until the
// deadline. A method that still runs at the deadline, for example because the database does not answer, is
// cancelled. The third result is the Repetition that belongs to the last error.
func (s *Server) execute(ctx context.Context, r request, deadline time.Time) (any, *Failure, Repetition) {
	m, unknown := findMethod(s.options.Endpoints, r)
	if unknown != nil {
		return nil, unknown, NoRepetition
	}
	limited, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for pause := firstRetryPause; ; pause = min(2*pause, maxRetryPause) {
		result, err := s.callMethod(limited, m, r)
		if err == nil {
			return result, nil, NoRepetition
		}
		failure, repetition := s.failureOf(err)
		if repetition == NoRepetition || ctx.Err() != nil {
			return nil, failure, repetition
		}
		if time.Now().Add(pause).After(deadline) {
			slog.ErrorContext(ctx, "RPC call failed",
				"method", r.Method, "reply", r.wantsReply(), "error", err)
			return nil, failure, repetition
		}
		select {
		case <-ctx.Done():
		// random, so that many calls do not retry at the same moment
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// failureOf returns the failure for a method's error. failureOf returns an error that is a *Failure as it is,
// and converts every other error with ErrorToFailure.
func (s *Server) failureOf(err error) (*Failure, Repetition) {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f, NoRepetition
	}
	return s.options.ErrorToFailure(err)
}

// callMethod calls the method once and converts a panic of the method to a failure, so that a panic does not
// end the other calls of the process.
func (s *Server) callMethod(ctx context.Context, m Method, r request) (result any, err error) {
	defer func() {
		if errors.Is(err, panics.Err) {
			result, err = nil, s.options.InternalFailure("An internal error occurred.")
		}
	}()
	defer panics.Recover(ctx, "an RPC method", &err)
	return m(ctx, r.Args)
}

func (s *Server) acknowledge(call amqp.Delivery) {
	if err := call.Ack(false); err != nil {
		s.metrics.countDrop(dropUnacknowledged)
	}
}
