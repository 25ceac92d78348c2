package main

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
)

// session is one command's way to the world.
type session struct {
	*settings
	wrong  error // with the environment; told only when a command needs it, so that help always works
	api    *api
	out    *printer
	stderr io.Writer

	connecting sync.Mutex
	workflow   client.Client // nil until it is needed
	away       error         // why there is none, once it was tried
}

// open is called once the flags are read.
func (s *session) open(stdout io.Writer) error {
	if s.wrong != nil {
		return s.wrong
	}
	if err := s.check(); err != nil {
		return err
	}
	s.api = newAPI(s.settings)
	s.out = &printer{w: stdout, format: s.output}
	return nil
}

func (s *session) close() {
	if s.workflow != nil {
		s.workflow.Close()
	}
}

// local tells whether Temporal is the one of a development run, to which the user's own Temporal profile does not
// belong.
func (s *session) local() bool { return s.address != "" && s.address == s.env.file["TEMPORAL_ADDRESS"] }

// temporal connects to Temporal, once. A command does not ask twice for what is away.
func (s *session) temporal(ctx context.Context) (client.Client, error) {
	s.connecting.Lock()
	defer s.connecting.Unlock()
	if s.workflow != nil || s.away != nil {
		return s.workflow, s.away
	}
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{EnvLookup: s.env, DisableFile: s.local()})
	if err != nil {
		return nil, usage("Temporal's settings in the environment: %s", err)
	}
	s.address = cmp.Or(s.address, options.HostPort, "127.0.0.1:7233")
	s.namespace = cmp.Or(s.namespace, options.Namespace, "default")
	options.HostPort, options.Namespace = s.address, s.namespace
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	c, err := client.DialContext(ctx, options)
	if err != nil {
		s.away = away("Temporal at "+s.address, "Is it running? Start everything with `make run`, or set --address.", err)
		return nil, s.away
	}
	s.workflow = c
	return c, nil
}
