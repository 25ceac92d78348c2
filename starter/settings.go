package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/pflag"

	"berth/internal/config"
)

// settings say where everything is. A flag wins over the environment, which wins over the file of addresses
// that `make run` writes, so that a second shell needs no settings.
type settings struct {
	config.Config
	url       string // of the API, without a trailing slash
	token     string
	address   string // of Temporal's frontend; empty until it is asked for: Temporal's own profile may know it
	namespace string
	database  string
	env       environment
	output    string
}

// environment is the process's environment with the address file beneath it. It is envconfig's EnvLookup.
type environment struct {
	process map[string]string
	file    map[string]string
}

// LookupEnv finds a variable that is set and not empty.
func (e environment) LookupEnv(name string) (string, bool) {
	value := cmp.Or(e.process[name], e.file[name])
	return value, value != ""
}

// Environ lists both, the process's values where a name is in both.
func (e environment) Environ() []string {
	all := make([]string, 0, len(e.process)+len(e.file))
	for name, value := range e.process {
		all = append(all, name+"="+value)
	}
	for name, value := range e.file {
		if e.process[name] == "" {
			all = append(all, name+"="+value)
		}
	}
	return all
}

func (e environment) get(name string) string {
	value, _ := e.LookupEnv(name)
	return value
}

// readEnvironment lays the process's environment over the address file of its data folder. No file is no error.
func readEnvironment(environ []string) (environment, error) {
	e := environment{process: map[string]string{}}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		e.process[name] = value
	}
	var err error
	if e.file, err = config.ReadAddresses(cmp.Or(e.process["BERTH_DATA"], ".berth")); err != nil {
		return e, fmt.Errorf("addresses of the running berth: %w", err)
	}
	if e.process["BERTH_LISTEN"] != "" {
		delete(e.file, "BERTH_URL")
	}
	return e, nil
}

// readSettings fills the settings from the environment, before flags are read. They are usable with an error too.
func readSettings(environ []string) (settings, error) {
	e, err := readEnvironment(environ)
	c, wrong := config.Load(e.Environ())
	err = errors.Join(err, wrong)
	if err != nil {
		err = &trouble{code: exitUsage, what: "the environment is not usable", err: err}
	}
	return settings{
		Config:    c,
		url:       cmp.Or(c.Client.URL, "http://"+dialable(cmp.Or(c.Listen, "127.0.0.1:8778"))),
		token:     cmp.Or(c.Client.Token, "admin"),
		address:   e.get("TEMPORAL_ADDRESS"),
		namespace: e.get("TEMPORAL_NAMESPACE"),
		database:  c.DatabaseURL,
		env:       e,
		output:    "table",
	}, err
}

// dialable turns an address to listen on into one to call.
func dialable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

func (s *settings) flags(f *pflag.FlagSet) {
	f.StringVar(&s.url, "url", s.url, "the API (BERTH_URL, else BERTH_LISTEN)")
	f.StringVar(&s.token, "token", s.token, "the API's token: admin, or user:project (BERTH_TOKEN)")
	f.Lookup("token").DefValue = "" // a secret has no place in the help
	f.StringVar(&s.address, "address", s.address, "Temporal's frontend (TEMPORAL_ADDRESS, else Temporal's own profile)")
	f.StringVar(&s.namespace, "namespace", s.namespace, "Temporal's namespace (TEMPORAL_NAMESPACE)")
	f.StringVarP(&s.output, "output", "o", s.output, "table, json or yaml")
}

func (s *settings) check() error {
	s.url = strings.TrimRight(s.url, "/")
	if !strings.HasPrefix(s.url, "http://") && !strings.HasPrefix(s.url, "https://") {
		return usage("--url %q does not begin with http:// or https://", s.url)
	}
	switch s.output {
	case "table", "json", "yaml":
		return nil
	default:
		return usage("--output %q is none of table, json, yaml", s.output)
	}
}
