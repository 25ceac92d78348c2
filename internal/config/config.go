// Package config turns the environment and an optional file into one struct, once, at the start of a process.
// A variable or key that berth does not know is an error: a misspelt setting must not be silently without effect.
// How Temporal is reached is not its business; that is Temporal's own envconfig (TEMPORAL_ADDRESS and so on).
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Roles of a worker process.
const (
	API      = "api"      // serves HTTP
	Relay    = "relay"    // carries notes from the database to Temporal
	Temporal = "temporal" // runs workflows and activities
	RPC      = "rpc"      // answers agents over RabbitMQ
)

// Kinds of authentication.
const (
	Noauth   = "noauth"
	Keystone = "keystone"
)

// Config is everything that berth can be told.
type Config struct {
	Listen      string // host:port of the HTTP listener
	DatabaseURL string
	Auth        string // Noauth or Keystone
	Policy      Policy
	CORS        CORS
	Roles       []string
	LogLevel    slog.Level
	ODL         ODL
	Nova        Nova
	RabbitMQ    []string // URLs of one cluster; none: agents are not spoken with over RabbitMQ
	RabbitMQCA  string   // PEM file
	Neutron     Neutron
	History     History
	Journal     Journal
	Incomplete  Incomplete
	Port        Port
	Networking  Networking
	Lease       Lease
	Candidates  Candidates
	Service     Service
	Client      Client
	Dev         Dev
}

// ODL is how OpenDaylight is reached.
type ODL struct {
	URL, Username, Password string
	CAFile                  string // trusted beside the system's authorities; empty for those alone
	Timeout                 time.Duration
	Poll                    time.Duration // how often it is asked what it has not told
	Hosts                   string        // path of the host configurations
	Features                string        // given ones; empty to ask for them
	SyncEvery               time.Duration // between full syncs without a reason; 0 for none
}

// Policy is where an operator's rules are, and whether those of older releases still count.
type Policy struct {
	File               string // empty for none
	EnforceNewDefaults bool
}

// CORS says which pages of other origins may call the APIs from a browser; without an origin none may.
type CORS struct {
	Origins     []string // scheme://host[:port] each, or "*"
	Credentials bool
	Expose      []string // headers of answers that pages may read
	MaxAge      time.Duration
	Methods     []string
	Headers     []string // of requests
}

// Nova is where external events go and what reservations are of. Without a URL it is told nothing.
type Nova struct{ URL, Token string }

// Neutron is where reserved floating IPs are made, with Nova's token. Without a URL none are.
type Neutron struct{ URL string }

// Journal is how long completed journal entries are kept; 0 means for ever.
type Journal struct{ Age time.Duration }

// History is how much of the generation history is kept.
type History struct {
	Age  time.Duration
	Rows int64
}

// Candidates says how the API looks for allocation candidates.
type Candidates struct {
	Max        int  // at most so many; 0 for as many as a request may cost
	DepthFirst bool // all of a tree before the next one, instead of one of each in turn
	Random     bool // the trees in another order each time
}

// Port says how long what a port waits for may take, by entity; the empty name is all others. A port that waits for
// longer goes on waiting, or is in ERROR if that is fatal.
type Port struct {
	Deadlines map[string]time.Duration
	Fatal     bool
}

// Networking is what the operator wishes of networks: how many of each resource a project may have that has no quota of
// its own (what is not named: any number), whether DHCP agents serve them, and whether new agents are trusted at once.
type Networking struct {
	Quota     map[string]int64
	DHCP      bool
	NewAgents bool
}

// Lease is what the operator asks of leases: how long hosts are cleaned after each, how long one may be (0: any),
// which projects may have longer ones, and who hears of them.
type Lease struct {
	Cleaning, Longest time.Duration
	BeforeEnd         time.Duration // so long before the end is the event of that name; 0: never
	Snapshot          bool          // servers of reservations that leave it to the operator are snapshot then
	Shuffled          bool          // equally good hosts are chosen at random
	Patience          time.Duration // the cloud is asked again for so long
	Exempt            []string
	Webhook           Webhook
	Enforcement       Enforcement
	Monitor           bool          // Nova is asked which hosts are up
	Healing           time.Duration // reservations that are needed so soon are healed; 0: all
}

// Enforcement is who decides on leases; without a URL nobody. What he does not decide is allowed if it is open.
type Enforcement struct {
	URL, Token string
	Open       bool
}

// Webhook is where notices go. Without a URL none are sent.
type Webhook struct{ URL, Token string }

// Incomplete is to whom consumers belong whose owner nobody has named.
type Incomplete struct{ Project, User string }

// Service is berth's own user at Keystone, which validates the tokens of others.
type Service struct {
	AuthURL, Username, Password, Project, UserDomain, ProjectDomain, Region, CAFile string
}

// Client is how the command line reaches the API; empty fields are found in the address file of a development run.
type Client struct{ URL, Token string }

// Dev says where the embedded neighbours of `worker --dev` live. Port 0 is a free one.
type Dev struct {
	Data         string
	DatabasePort int
	TemporalPort int
	UIPort       int
	ODLPort      int
	Demo         bool
}

// File is the variable that names the optional YAML file. Its keys are the other variables in lower case and
// without the prefix; the environment wins over it.
const File = "BERTH_CONFIG"

const (
	prefix     = "BERTH_"
	testPrefix = "BERTH_TEST_" // belongs to the tests
	// temporalCLI names the temporal binary for package devstack, which tests use without a Config.
	temporalCLI = "BERTH_TEMPORAL_CLI"
)

// Load reads an environment in the form of os.Environ and the file that it names.
func Load(environ []string) (Config, error) {
	var c Config
	values := map[string]string{}
	for name, v := range variables {
		values[name] = v.value
	}
	env, errs := fromEnvironment(environ)
	file, err := fromFile(env[File])
	errs = append(errs, err)
	maps.Copy(values, file)
	maps.Copy(values, env)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if v := variables[name]; v.set != nil {
			if err := v.set(&c, values[name]); err != nil {
				errs = append(errs, fmt.Errorf("%s=%s: %w", name, v.shown(values[name]), err))
			}
		}
	}
	errs = append(errs, c.check())
	return c, errors.Join(errs...)
}

// check refuses settings that do not go together.
func (c Config) check() error {
	if c.Auth == Noauth && c.Listen != "" && !loopback(c.Listen) {
		return fmt.Errorf("BERTH_LISTEN=%s: BERTH_AUTH=noauth believes every caller and listens on loopback only; set BERTH_AUTH=keystone, or listen on 127.0.0.1", c.Listen)
	}
	if c.Lease.Monitor && c.Nova.URL == "" {
		return errors.New("BERTH_LEASE_MONITOR=on needs BERTH_NOVA_URL, which tells which hosts are up")
	}
	if c.Auth == Keystone && c.Service.AuthURL == "" {
		return errors.New("BERTH_AUTH=keystone needs OS_AUTH_URL and the other OS_ variables of berth's service user")
	}
	if slices.Contains(c.Roles, RPC) && len(c.RabbitMQ) == 0 {
		return errors.New("the role rpc needs BERTH_RABBITMQ_URL")
	}
	return nil
}

func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// fromEnvironment picks berth's variables. An empty one counts as not set.
func fromEnvironment(environ []string) (map[string]string, []error) {
	values := map[string]string{}
	var errs []error
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if _, known := variables[name]; known {
			if value != "" {
				values[name] = value
			}
			continue
		}
		if strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, testPrefix) {
			errs = append(errs, fmt.Errorf("unknown variable %s: did you mean %s?", name, nearest(name, slices.Sorted(maps.Keys(variables)))))
		}
	}
	return values, errs
}

func fromFile(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	var keys map[string]any
	if err := yaml.Unmarshal(raw, &keys); err != nil {
		return nil, fmt.Errorf("%s=%s: %w", File, path, err)
	}
	known := map[string]string{} // key → variable
	for name := range variables {
		if name != File && name != temporalCLI {
			known[strings.ToLower(strings.TrimPrefix(name, prefix))] = name
		}
	}
	values := map[string]string{}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		name, ok := known[key]
		if !ok {
			errs = append(errs, fmt.Errorf("%s: unknown key %q: did you mean %q?", path, key, nearest(key, slices.Sorted(maps.Keys(known)))))
			continue
		}
		value, err := scalar(keys[key])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", path, key, err))
			continue
		}
		values[name] = value
	}
	return values, errors.Join(errs...)
}

// scalar writes a YAML value as the environment would spell it: a list with commas, a boolean as on or off.
func scalar(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case map[string]any:
		return "", errors.New("must be one value, not a map")
	case bool:
		if v {
			return "on", nil
		}
		return "off", nil
	case []any:
		var parts []string
		for _, item := range v {
			part, err := scalar(item)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, ","), nil
	default:
		return fmt.Sprint(v), nil
	}
}
