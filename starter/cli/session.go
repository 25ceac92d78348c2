package cli

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"berth/internal/payloadcodec"
)

// Session is the state of one run of a starter command: settings, clients and output.
type Session struct {
	*Settings
	// error about invalid settings in the environment; only Open reports this error, so that --help works
	// without valid settings
	SettingsError error
	API           *Client
	Output        *Printer
	Stderr        io.Writer        // a TextWriter
	Now           func() time.Time // the clock of the session; tests set another clock
	// Dial connects to a Temporal server; nil: client.DialContext.
	Dial func(context.Context, client.Options) (client.Client, error)
	// TimeoutFactor multiplies the time limits of the calls to services, except the limits that a flag sets;
	// 0: 1.
	TimeoutFactor int

	// whether the address of Temporal comes from the address file of a development run: then starter does not
	// read the user's own Temporal profile
	developmentServer bool

	temporalLock   sync.Mutex
	temporalClient client.Client // nil until the method Temporal has connected
	temporalError  error         // error of the attempt to connect, if the attempt failed
}

// Open prepares the session after the flags were parsed.
func (s *Session) Open(stdout io.Writer) error {
	if s.SettingsError != nil {
		return s.SettingsError
	}
	if err := s.validate(); err != nil {
		return err
	}
	s.developmentServer = s.TemporalAddress != "" && s.TemporalAddress == s.Env.file["TEMPORAL_ADDRESS"]
	s.API = NewClient(s.URL, s.Token)
	s.API.OperatorURL = s.operatorURL()
	if err := s.API.UseTLS(s.Client); err != nil {
		return err
	}
	s.API.HTTP.Timeout = s.scale(s.API.HTTP.Timeout)
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Dial == nil {
		s.Dial = client.DialContext
	}
	query, err := parseQuery(s.Format)
	s.Output = &Printer{
		Writer: TextWriter(stdout),
		Stdout: stdout,
		Format: s.Format,
		Query:  query,
	}
	return err
}

func (s *Session) scale(limit time.Duration) time.Duration {
	return limit * time.Duration(cmp.Or(s.TimeoutFactor, 1))
}

// WithTimeout returns a context that ends after the time limit, which TimeoutFactor multiplies.
func (s *Session) WithTimeout(
	ctx context.Context,
	limit time.Duration,
) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.scale(limit))
}

// Close closes the session's connection to Temporal if the session has one.
func (s *Session) Close() {
	if s.temporalClient != nil {
		s.temporalClient.Close()
	}
}

// RetryTemporal makes the next call of Temporal connect again if the last attempt failed.
func (s *Session) RetryTemporal() {
	s.temporalLock.Lock()
	defer s.temporalLock.Unlock()
	s.temporalError = nil
}

// Temporal connects to the Temporal server at the first call, and returns the same client, or the same error,
// at every later call.
func (s *Session) Temporal(ctx context.Context) (client.Client, error) {
	s.temporalLock.Lock()
	defer s.temporalLock.Unlock()
	if s.temporalClient != nil || s.temporalError != nil {
		return s.temporalClient, s.temporalError
	}
	options, err := envconfig.LoadClientOptions(
		envconfig.LoadClientOptionsRequest{EnvLookup: s.Env, DisableFile: s.developmentServer},
	)
	if err != nil {
		return nil, UsageError("Temporal's settings in the environment: %s", err)
	}
	s.TemporalAddress = cmp.Or(s.TemporalAddress, options.HostPort, "127.0.0.1:7233")
	s.TemporalNamespace = cmp.Or(s.TemporalNamespace, options.Namespace, "default")
	if strings.Contains(s.TemporalAddress, "@") { // a message that names the address would contain a password
		return nil, UsageError("TEMPORAL_ADDRESS or --address must be host:port, without a user")
	}
	options.HostPort, options.Namespace = s.TemporalAddress, s.TemporalNamespace
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	codec, err := payloadcodec.New(s.Encryption.Keys, !s.Encryption.DecryptOnly)
	if err != nil {
		return nil, UsageError("%s: %s", payloadcodec.Setting, err)
	}
	codec.Apply(&options)
	ctx, cancel := s.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	c, err := s.Dial(ctx, options)
	if err != nil {
		s.temporalError = Unavailable("Temporal at "+s.TemporalAddress,
			"Is it running? Start everything with `make run`, or set --address.", err)
		return nil, s.temporalError
	}
	s.temporalClient = c
	return c, nil
}
