package config

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"berth/internal/safeurl"
)

// setter parses a value and stores the result in the Config.
type setter = func(*Config, string) error

// ParseRoles parses a list of roles, separated by commas. If a role is listed twice, the parsed list contains
// the role once.
func ParseRoles(s string) ([]string, error) {
	known := []string{API, Relay, Temporal, RPC}
	var roles []string
	for role := range strings.SplitSeq(s, ",") {
		role = strings.TrimSpace(role)
		if !slices.Contains(known, role) {
			return nil, fmt.Errorf("unknown role %q: did you mean %s? (roles are %s)",
				role, nearest(role, known), strings.Join(known, ", "))
		}
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return roles, nil
}

// listen parses host:port. An empty value of the setting means that there is no listener.
func listen(field func(*Config) *string) setter {
	return func(c *Config, s string) error {
		if s == "" {
			return nil
		}
		host, p, err := net.SplitHostPort(s)
		if err != nil {
			return errors.New("must be host:port")
		}
		*field(c) = net.JoinHostPort(host, p)
		var n int
		return parsePort(&n, p)
	}
}

// auth parses the kind of authentication.
func auth(c *Config, s string) error {
	c.Auth = s
	if s != "" && s != Noauth && s != Keystone {
		return errors.New("must be noauth or keystone")
	}
	return nil
}

// agentSignatures parses BERTH_AGENT_SIGNATURES.
func agentSignatures(c *Config, s string) error {
	c.Networking.AgentSignatures = s
	if s != "" && s != SignaturesOff && s != SignaturesRequired {
		return errors.New("must be off or required")
	}
	return nil
}

// rabbitMQIdentities parses BERTH_RABBITMQ_IDENTITIES.
func rabbitMQIdentities(c *Config, s string) error {
	if s != "off" && s != "required" {
		return errors.New("must be off or required")
	}
	c.RabbitMQIdentities = s == "required"
	return nil
}

// logLevel parses a log level.
func logLevel(into *slog.Level, s string) error {
	if into.UnmarshalText([]byte(s)) != nil {
		return errors.New("must be debug, info, warn or error")
	}
	return nil
}

// text stores the value unchanged.
func text(field func(*Config) *string) setter {
	return func(c *Config, s string) error {
		*field(c) = s
		return nil
	}
}

// deploymentName parses the name of a Worker Deployment, which Temporal limits.
func deploymentName(c *Config, s string) error {
	if len(s) > 100 || strings.ContainsAny(s, ".:") || strings.HasPrefix(s, "__") {
		return errors.New("must be a name of at most 100 bytes without a dot, a colon or __ at the beginning")
	}
	c.WorkerDeployment.Name = s
	return nil
}

// urlPath parses the path of a URL.
func urlPath(field func(*Config) *string) setter {
	return func(c *Config, s string) error {
		if !strings.HasPrefix(s, "/") {
			return errors.New("must be a path, which begins with a slash")
		}
		*field(c) = s
		return nil
	}
}

// httpURL parses an http or https URL. An empty value of the setting means that there is no URL. A URL with a
// user and a password is an error, because berth prints its URLs in messages; settings of their own contain
// the credentials for services.
func httpURL(field func(*Config) *string) setter {
	return func(c *Config, s string) error {
		if s == "" {
			return nil
		}
		switch u := parseHTTPURL(s); {
		case u == nil:
			return errors.New("must be an http or https URL")
		case u.User != nil:
			return errors.New("must not contain a user and a password")
		}
		*field(c) = strings.TrimRight(s, "/")
		return nil
	}
}

// parseHTTPURL returns an http or https URL, or nil for anything else.
func parseHTTPURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil
	}
	return u
}

// amqpURLs parses the URLs of the brokers of one cluster.
func amqpURLs(c *Config, s string) error {
	_ = list(func(c *Config) *[]string { return &c.RabbitMQ })(c, s)
	for _, broker := range c.RabbitMQ {
		u, err := url.Parse(broker)
		if err != nil || u.Scheme != "amqp" && u.Scheme != "amqps" || u.Host == "" {
			return errors.New(
				"must be amqp://user:password@host:port/vhost, or several such URLs separated by commas",
			)
		}
	}
	return nil
}

// list parses words that are separated by commas.
func list(field func(*Config) *[]string) setter {
	return func(c *Config, s string) error {
		*field(c) = append(*field(c), words(s)...)
		return nil
	}
}

// words splits words that are separated by commas.
func words(s string) (all []string) {
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			all = append(all, item)
		}
	}
	return all
}

// encryptionKeySize is the size of a key of AES-256, in bytes.
const encryptionKeySize = 32

// encryptionKeys parses keys in Base64. The word "off" in front of the keys turns the encryption off. The
// errors name the number of a key, and never the key.
func encryptionKeys(c *Config, s string) error {
	list := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	if len(list) > 0 && list[0] == "off" {
		c.Encryption.DecryptOnly, list = true, list[1:]
	}
	for i, text := range list {
		key, err := base64.StdEncoding.DecodeString(text)
		switch {
		case text == "off":
			return errors.New("the word off must be in front of all keys")
		case err != nil || len(key) != encryptionKeySize:
			return fmt.Errorf(
				"key %d must have %d bytes in Base64; `openssl rand -base64 %d` creates such a key",
				i+1,
				encryptionKeySize,
				encryptionKeySize,
			)
		case slices.ContainsFunc(c.Encryption.Keys, func(k []byte) bool { return bytes.Equal(k, key) }):
			return fmt.Errorf("key %d is in the list twice", i+1)
		}
		c.Encryption.Keys = append(c.Encryption.Keys, key)
	}
	if s != "" && len(list) == 0 {
		return errors.New("there is no key; unset the setting if no payload in Temporal is encrypted")
	}
	return nil
}

// trustedProxies parses a list of IP addresses and networks.
func trustedProxies(c *Config, s string) error {
	for _, word := range words(s) {
		network, err := netip.ParsePrefix(word)
		if address, alone := netip.ParseAddr(word); alone == nil && address.Zone() == "" {
			network, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return fmt.Errorf(
				"%q must be an IP address such as 192.0.2.7 or a network such as 192.0.2.0/24",
				word,
			)
		}
		if network.Bits() == 0 {
			return fmt.Errorf(
				"%q contains every client, so each client could choose its address and would have no limits; name the proxies",
				word,
			)
		}
		c.TrustedProxies = append(c.TrustedProxies, network)
	}
	return nil
}

// origins parses a list of origins in the form of the header Origin. berth allows an origin of a web page if
// the header Origin of the request equals an origin of the list literally or if the list contains "*".
func origins(c *Config, s string) error {
	_ = list(func(c *Config) *[]string { return &c.CORS.Origins })(c, s)
	for _, origin := range c.CORS.Origins {
		if u := parseHTTPURL(origin); origin != "*" &&
			(u == nil || origin != u.Scheme+"://"+u.Host || u.Host != strings.ToLower(u.Host)) {
			return fmt.Errorf("%q must be scheme://host[:port] in lower case and without a path, or *",
				safeurl.RedactValue(origin))
		}
	}
	return nil
}

// duration parses a positive duration.
func duration(field func(*Config) *time.Duration) setter {
	return func(c *Config, s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return errors.New("must be a positive duration such as 10s")
		}
		*field(c) = d
		return nil
	}
}

// maxRequestTimeout is the maximum of BERTH_REQUEST_TIMEOUT. It is less than the time after which the HTTP
// server closes the connection of a request without an answer.
const maxRequestTimeout = 50 * time.Second

func requestTimeout(c *Config, s string) error {
	if err := duration(func(c *Config) *time.Duration { return &c.RequestTimeout })(c, s); err != nil {
		return err
	}
	if c.RequestTimeout > maxRequestTimeout {
		return fmt.Errorf("must be at most %s", maxRequestTimeout)
	}
	return nil
}

// Limits of BERTH_PROJECT_RATE and BERTH_AGENT_RATE, in requests per second, and of their bursts, in
// requests. An empty bucket of the largest burst is full after less than four months at the lowest rate.
const (
	minRate  = 0.001
	maxRate  = 1_000_000
	maxBurst = 10_000
)

// perSecond parses a number of requests per second.
func perSecond(field func(*Config) *float64) func(*Config, string) error {
	return func(c *Config, s string) error {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || n != 0 && !(n >= minRate && n <= maxRate) {
			return fmt.Errorf("must be 0, or a number from %g to %d", minRate, maxRate)
		}
		*field(c) = n
		return nil
	}
}

// share parses a share of a whole.
func share(field func(*Config) *float64) setter {
	return func(c *Config, s string) error {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || !(n >= 0 && n <= 1) {
			return errors.New("must be a number from 0 to 1")
		}
		*field(c) = n
		return nil
	}
}

// burst parses a number of requests.
func burst(field func(*Config) *int) func(*Config, string) error {
	return func(c *Config, s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxBurst {
			return fmt.Errorf("must be an integer from 1 to %d", maxBurst)
		}
		*field(c) = n
		return nil
	}
}

// durationOrOff parses a positive duration. durationOrOff converts the word "off" to the duration 0.
func durationOrOff(field func(*Config) *time.Duration) setter {
	return func(c *Config, s string) error {
		if s == "off" {
			*field(c) = 0
			return nil
		}
		return duration(field)(c, s)
	}
}

// count parses a positive whole number.
func count[N int | int64](field func(*Config) *N) setter {
	return func(c *Config, s string) error {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n <= 0 || int64(N(n)) != n {
			return errors.New("must be a positive whole number")
		}
		*field(c) = N(n)
		return nil
	}
}

// maximum parses a whole number; 0 stands for no maximum.
func maximum(field func(*Config) *int) setter {
	return func(c *Config, s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return errors.New("must be a whole number; 0 means no maximum")
		}
		*field(c) = n
		return nil
	}
}

// maxDays is the maximum of a setting in days.
const maxDays = 36500

// days parses a whole number of days; 0 stands for no limit.
func days(field func(*Config) *time.Duration) setter {
	return func(c *Config, s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > maxDays {
			return fmt.Errorf("must be a whole number of days up to %d; 0 means no limit", maxDays)
		}
		*field(c) = time.Duration(n) * 24 * time.Hour
		return nil
	}
}

// candidateOrder parses the order of allocation candidates.
func candidateOrder(c *Config, s string) error {
	c.Candidates.DepthFirst = s == "depth-first"
	if s != "breadth-first" && s != "depth-first" {
		return errors.New("must be breadth-first or depth-first")
	}
	return nil
}

// deadlines parses the deadlines of provisioning blocks: one duration for all entities, or several durations
// in the form ENTITY=DURATION. The value "off" of the setting means that no entity has a deadline.
func deadlines(c *Config, s string) error {
	c.Port.Deadlines = map[string]time.Duration{}
	if s == "off" {
		return nil
	}
	for part := range strings.SplitSeq(s, ",") {
		entity, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			entity, value = "", entity
		}
		var limit time.Duration
		if err := duration(func(*Config) *time.Duration { return &limit })(c, value); err != nil {
			return err
		}
		if _, twice := c.Port.Deadlines[entity]; twice {
			return fmt.Errorf("the deadline %s is given twice", cmp.Or(entity, "of all entities"))
		}
		c.Port.Deadlines[entity] = limit
	}
	return nil
}

// quota parses NAME=NUMBER pairs, separated by commas. The value "off" of the setting means that there are no
// limits.
func quota(field func(*Config) *map[string]int64) setter {
	return func(c *Config, s string) error {
		limits := map[string]int64{}
		*field(c) = limits
		if s == "off" {
			return nil
		}
		for part := range strings.SplitSeq(s, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil || n < -1 {
				return fmt.Errorf("%q must be NAME=NUMBER; -1 means no limit", part)
			}
			if _, twice := limits[name]; twice {
				return fmt.Errorf("%q is given twice", name)
			}
			limits[name] = n
		}
		return nil
	}
}

// maxVLAN is the largest VLAN ID.
const maxVLAN = 4094

// vlanRanges parses ranges of VLANs in the form of Neutron's network_vlan_ranges: NETWORK:LOW:HIGH, or
// NETWORK for all VLANs of the network.
func vlanRanges(c *Config, s string) error {
	if s == "" {
		return nil
	}
	for part := range strings.SplitSeq(s, ",") {
		name, bounds, hasBounds := strings.Cut(strings.TrimSpace(part), ":")
		r := VLANRange{name, 1, maxVLAN}
		var err error
		if hasBounds {
			low, high, _ := strings.Cut(bounds, ":")
			if r.Low, err = strconv.Atoi(low); err == nil {
				r.High, err = strconv.Atoi(high)
			}
		}
		if err != nil || name == "" || r.Low < 1 || r.High > maxVLAN || r.High < r.Low {
			return fmt.Errorf("%q must be NETWORK:LOW:HIGH or NETWORK, with VLAN IDs from 1 to %d",
				part, maxVLAN)
		}
		c.Networking.VLANRanges = append(c.Networking.VLANRanges, r)
	}
	return nil
}

// overdue parses the setting that says what happens to a port when one of its provisioning blocks passes the
// deadline: the port waits, or its status becomes ERROR.
func overdue(c *Config, s string) error {
	c.Port.OverdueIsError = s == "error"
	if s != "wait" && s != "error" {
		return errors.New("must be wait or error")
	}
	return nil
}

// identifier parses the ID of a project or a user.
func identifier(field func(*Config) *string) setter {
	return func(c *Config, s string) error {
		if s == "" || len(s) > 255 || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return errors.New("must be a name of 1 to 255 bytes")
		}
		*field(c) = s
		return nil
	}
}

// port parses a TCP port.
func port(field func(*Config) *int) setter {
	return func(c *Config, s string) error { return parsePort(field(c), s) }
}

func parsePort(into *int, s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 65535 {
		return errors.New("must be a port, 0 to 65535")
	}
	*into = n
	return nil
}

// onOff parses the words "on" and "off".
func onOff(field func(*Config) *bool) setter {
	return func(c *Config, s string) error {
		if s != "on" && s != "off" {
			return errors.New("must be on or off")
		}
		*field(c) = s == "on"
		return nil
	}
}
