package cli

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"berth/internal/config"
)

// Settings are the addresses and credentials that a starter command uses. The value of a flag has precedence
// over the environment variable, and the environment variable has precedence over the address file that `make
// run` writes.
type Settings struct {
	config.Config
	URL   string // of the API, without a trailing slash
	Token string
	// host:port of Temporal's frontend; if empty, Session.Temporal reads it from Temporal's own profile
	TemporalAddress   string
	TemporalNamespace string
	Env               Environment
	Format            string // table, json, yaml or jsonpath=QUERY; of lists also csv, name or wide
}

// ReadSettings reads the settings from an environment in the form of os.Environ. If the environment has
// invalid settings, ReadSettings returns an error and also settings that are sufficient for --help.
func ReadSettings(environ []string) (Settings, error) {
	e, err := readEnvironment(environ)
	c, invalid := config.Load(e.Environ())
	err = errors.Join(err, invalid)
	if err != nil {
		err = &Error{Code: ExitUsage, What: "the environment has invalid settings", Err: err}
	}
	return Settings{
		Config:            c,
		URL:               cmp.Or(c.Client.URL, scheme(c)+"://"+clientAddress(cmp.Or(c.Listen, "127.0.0.1:8778"))),
		Token:             cmp.Or(c.Client.Token, "admin"),
		TemporalAddress:   e.Get("TEMPORAL_ADDRESS"),
		TemporalNamespace: e.Get("TEMPORAL_NAMESPACE"),
		Env:               e,
		Format:            "table",
	}, err
}

// UsesKeystone reports whether the API authenticates its callers with Keystone.
func (s *Settings) UsesKeystone() bool { return s.Auth == config.Keystone }

// scheme returns the URL scheme of an API process that has the same settings as starter.
func scheme(c config.Config) string {
	if c.TLS.CertFile != "" {
		return "https"
	}
	return "http"
}

// operatorURL returns the URL of /operator/v1. It is the address of BERTH_OPERATOR_LISTEN only for the API of
// BERTH_LISTEN, because another API has other addresses.
func (s *Settings) operatorURL() string {
	scheme, address, _ := strings.Cut(s.URL, "://")
	switch {
	case s.Client.OperatorURL != "":
		return s.Client.OperatorURL
	case s.OperatorListen != "" && address == clientAddress(s.Listen):
		return scheme + "://" + clientAddress(s.OperatorListen)
	default:
		return s.URL
	}
}

// clientAddress converts an address to listen on into an address to connect to: a wildcard host becomes
// 127.0.0.1.
func clientAddress(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

func (s *Settings) addFlags(f *pflag.FlagSet) {
	f.StringVar(&s.URL, "url", s.URL, "URL of the API (BERTH_URL, else BERTH_LISTEN)")
	f.StringVar(&s.Token, "token", s.Token,
		"X-Auth-Token for the API: admin or user:project with noauth (BERTH_TOKEN)")
	f.Lookup("token").DefValue = "" // the help must not print a secret
	f.StringVar(&s.TemporalAddress, "address", s.TemporalAddress,
		"host:port of Temporal's frontend (TEMPORAL_ADDRESS, else Temporal's own profile)")
	f.StringVar(&s.TemporalNamespace, "namespace", s.TemporalNamespace,
		"Temporal namespace (TEMPORAL_NAMESPACE)")
	f.StringVarP(&s.Format, "output", "o", s.Format,
		"output format: table, json, yaml or jsonpath=QUERY (RFC 9535); for lists also csv, name or wide")
}

func (s *Settings) validate() error {
	s.URL = strings.TrimRight(s.URL, "/")
	if !strings.HasPrefix(s.URL, "http://") && !strings.HasPrefix(s.URL, "https://") {
		return UsageError("--url %q does not begin with http:// or https://", s.URL)
	}
	if u, err := url.Parse(s.URL); err == nil && u.User != nil {
		return UsageError("--url must not contain a user and a password")
	}
	if !slices.Contains(append([]string{"table", "json", "yaml"}, listFormats...), s.Format) &&
		!strings.HasPrefix(s.Format, queryFormat) {
		return UsageError("--output %q is none of table, json, yaml, jsonpath=QUERY, and for lists csv, name, wide", s.Format)
	}
	return nil
}
