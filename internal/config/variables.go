package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// variable is one thing that berth can be told.
type variable struct {
	value  string // unless told otherwise
	help   string
	secret bool
	set    func(*Config, string) error // nil: somebody else reads it
}

// nobody is Placement's own word for what has no owner.
const nobody = "00000000-0000-0000-0000-000000000000"

// variables is the one list of what berth can be told; `worker -h` prints it.
var variables = map[string]variable{
	File:                                   {help: "YAML file with the same settings in lower case without BERTH_; variables win over it"},
	temporalCLI:                            {help: "the temporal binary that --dev and the tests run; else one on PATH, else it is built"},
	"BERTH_LISTEN":                         {value: "127.0.0.1:8778", help: "host:port of API, health and metrics", set: listen},
	"BERTH_DATABASE_URL":                   {help: "PostgreSQL, postgres://user:password@host:port/database", secret: true, set: text(func(c *Config) *string { return &c.DatabaseURL })},
	"BERTH_AUTH":                           {value: Noauth, help: "noauth (loopback only) or keystone (with OS_AUTH_URL, OS_USERNAME … for berth's service user)", set: auth},
	"BERTH_POLICY_FILE":                    {help: "YAML file with rules in the grammar of oslo.policy, in place of the defaults (Placement's so far); read again when it changes", set: text(func(c *Config) *string { return &c.Policy.File })},
	"BERTH_ENFORCE_NEW_DEFAULTS":           {value: "on", help: "off: where the policy file has no rule, what older releases of OpenStack allowed is enough as well", set: onOff(func(c *Config) *bool { return &c.Policy.EnforceNewDefaults })},
	"BERTH_ROLES":                          {value: "api,relay,temporal", help: "what this process does; -roles wins over it", set: func(c *Config, s string) (err error) { c.Roles, err = ParseRoles(s); return err }},
	"BERTH_LOG_LEVEL":                      {value: "info", help: "debug, info, warn or error", set: func(c *Config, s string) error { return level(&c.LogLevel, s) }},
	"BERTH_ODL_URL":                        {help: "OpenDaylight, as http://host:8181/controller/nb/v2/neutron; without it changes are mirrored nowhere", set: address(func(c *Config) *string { return &c.ODL.URL })},
	"BERTH_ODL_USERNAME":                   {value: "admin", help: "OpenDaylight's user", set: text(func(c *Config) *string { return &c.ODL.Username })},
	"BERTH_ODL_PASSWORD":                   {value: "admin", help: "OpenDaylight's password", secret: true, set: text(func(c *Config) *string { return &c.ODL.Password })},
	"BERTH_ODL_TIMEOUT":                    {value: "10s", help: "for one request to OpenDaylight", set: duration(func(c *Config) *time.Duration { return &c.ODL.Timeout })},
	"BERTH_ODL_POLL":                       {value: "30s", help: "how often OpenDaylight is asked for its features, its hosts and the ports that it has wired, besides what it tells by itself", set: duration(func(c *Config) *time.Duration { return &c.ODL.Poll })},
	"BERTH_ODL_HOSTCONF_URI":               {value: "/restconf/operational/neutron:neutron/hostconfigs", help: "path of OpenDaylight's host configurations", set: path(func(c *Config) *string { return &c.ODL.Hosts })},
	"BERTH_ODL_FEATURES":                   {help: "OpenDaylight's features, names with commas or its own JSON; unless set it is asked for them", set: text(func(c *Config) *string { return &c.ODL.Features })},
	"BERTH_ODL_SYNC_EVERY":                 {value: "off", help: "a full sync is begun so long after the last one, as 24h, though nothing seems to be missing; or off", set: durationOrOff(func(c *Config) *time.Duration { return &c.ODL.SyncEvery })},
	"BERTH_ODL_CA_FILE":                    {help: "PEM file with OpenDaylight's certificate authority", set: text(func(c *Config) *string { return &c.ODL.CAFile })},
	"BERTH_NOVA_URL":                       {help: "Nova's endpoint for external events and for what is reserved; without it Nova is told nothing", set: address(func(c *Config) *string { return &c.Nova.URL })},
	"BERTH_NEUTRON_URL":                    {help: "the Neutron that has floating IPs, without /v2.0; without it reserved ones are not made", set: address(func(c *Config) *string { return &c.Neutron.URL })},
	"BERTH_NOVA_TOKEN":                     {help: "X-Auth-Token for Nova and for BERTH_NEUTRON_URL; with keystone that of berth's service user unless set", secret: true, set: text(func(c *Config) *string { return &c.Nova.Token })},
	"BERTH_RABBITMQ_CA_FILE":               {help: "PEM file with RabbitMQ's certificate authority, for amqps", set: text(func(c *Config) *string { return &c.RabbitMQCA })},
	"BERTH_RABBITMQ_URL":                   {help: "RabbitMQ of Neutron's agents, as amqp://user:password@host:5672/ or amqps, or several of a cluster with commas", secret: true, set: brokers},
	"BERTH_INCOMPLETE_CONSUMER_PROJECT_ID": {value: nobody, help: "project of consumers for which clients before Placement 1.8 name none, or of which an import knew none", set: name(func(c *Config) *string { return &c.Incomplete.Project })},
	"BERTH_INCOMPLETE_CONSUMER_USER_ID":    {value: nobody, help: "their user", set: name(func(c *Config) *string { return &c.Incomplete.User })},
	"BERTH_JOURNAL_AGE":                    {value: "168h", help: "completed journal entries that are older are deleted; off keeps them for ever", set: durationOrOff(func(c *Config) *time.Duration { return &c.Journal.Age })},
	"BERTH_HISTORY_AGE":                    {value: "720h", help: "older entries of the generation history are forgotten", set: duration(func(c *Config) *time.Duration { return &c.History.Age })},
	"BERTH_HISTORY_ROWS":                   {value: "5000000", help: "so many of its newest entries are kept, at some 500 bytes each", set: count(func(c *Config) *int64 { return &c.History.Rows })},
	"BERTH_PORT_DEADLINE":                  {value: "5m", help: "how long a port's block may stand: 5m, L2=5m,DHCP=2m for single entities, or off", set: deadlines},
	"BERTH_PORT_OVERDUE":                   {value: "wait", help: "what becomes of a port whose block stands for longer: wait (it goes on waiting) or error (its status is ERROR)", set: overdue},
	"BERTH_QUOTA":                          {value: "network=100,subnet=100,port=500,security_group=10,security_group_rule=100", help: "how many of each a project may have that has no quota of its own; any number of what is not named, or with off of everything", set: quota},
	"BERTH_TRADITIONAL_DHCP":               {value: "on", help: "off: somebody else answers DHCP, no port waits for a DHCP agent and none is given a network", set: onOff(func(c *Config) *bool { return &c.Networking.DHCP })},
	"BERTH_NEW_AGENTS":                     {value: "on", help: "off: a networking agent that reports for the first time is disabled until an operator enables it", set: onOff(func(c *Config) *bool { return &c.Networking.NewAgents })},
	"BERTH_LEASE_CLEANING_TIME":            {value: "off", help: "a host is leased to nobody for so long after a lease's end, as 10m; or off", set: durationOrOff(func(c *Config) *time.Duration { return &c.Lease.Cleaning })},
	"BERTH_LEASE_BEFORE_END":               {value: "60m", help: "so long before a lease's end its before_end_lease event is due, unless the lease says when; off: never", set: durationOrOff(func(c *Config) *time.Duration { return &c.Lease.BeforeEnd })},
	"BERTH_LEASE_SNAPSHOT":                 {value: "off", help: "on: at that event the servers on hosts whose reservation says before_end=default are snapshot", set: onOff(func(c *Config) *bool { return &c.Lease.Snapshot })},
	"BERTH_LEASE_RANDOM_HOSTS":             {value: "off", help: "on: among hosts that are equally good for a lease the choice is random", set: onOff(func(c *Config) *bool { return &c.Lease.Shuffled })},
	"BERTH_LEASE_PATIENCE":                 {value: "10m", help: "how long the cloud is asked again to start or end a reservation before that is in error", set: duration(func(c *Config) *time.Duration { return &c.Lease.Patience })},
	"BERTH_LEASE_MAX_DURATION":             {value: "off", help: "how long a lease may be, as 720h; or off", set: durationOrOff(func(c *Config) *time.Duration { return &c.Lease.Longest })},
	"BERTH_LEASE_MAX_DURATION_EXEMPT":      {help: "projects whose leases may be longer, with commas", set: list(func(c *Config) *[]string { return &c.Lease.Exempt })},
	"BERTH_LEASE_ENFORCEMENT_URL":          {help: "a service that is asked before a lease is made or changed, at check-create and check-update below it, and told of its end at on-end", set: address(func(c *Config) *string { return &c.Lease.Enforcement.URL })},
	"BERTH_LEASE_ENFORCEMENT_TOKEN":        {help: "X-Auth-Token for that service", secret: true, set: text(func(c *Config) *string { return &c.Lease.Enforcement.Token })},
	"BERTH_LEASE_ENFORCEMENT_OPEN":         {value: "off", help: "on: what that service does not decide, because it is away or ill, is allowed", set: onOff(func(c *Config) *bool { return &c.Lease.Enforcement.Open })},
	"BERTH_LEASE_MONITOR":                  {value: "off", help: "on: Nova is asked every minute which hypervisors are up, and a host that is not is replaced in the leases that hold it", set: onOff(func(c *Config) *bool { return &c.Lease.Monitor })},
	"BERTH_LEASE_HEALING_INTERVAL":         {value: "60m", help: "lost hosts are replaced in leases that run or start within so long; off: in all", set: durationOrOff(func(c *Config) *time.Duration { return &c.Lease.Healing })},
	"BERTH_LEASE_WEBHOOK_URL":              {help: "where every transition of a lease is posted as JSON, at least once and in order; without it none is", set: address(func(c *Config) *string { return &c.Lease.Webhook.URL })},
	"BERTH_LEASE_WEBHOOK_TOKEN":            {help: "X-Auth-Token for the webhook", secret: true, set: text(func(c *Config) *string { return &c.Lease.Webhook.Token })},
	"BERTH_URL":                            {help: "starter: the API, as http://host:port", set: address(func(c *Config) *string { return &c.Client.URL })},
	"BERTH_TOKEN":                          {value: "admin", help: "starter: its X-Auth-Token", secret: true, set: text(func(c *Config) *string { return &c.Client.Token })},
	"BERTH_DATA":                           {value: ".berth", help: "--dev: folder of all embedded state", set: text(func(c *Config) *string { return &c.Dev.Data })},
	"BERTH_DEV_DATABASE_PORT":              {value: "8779", help: "--dev: port of PostgreSQL, 0 for a free one", set: port(func(c *Config) *int { return &c.Dev.DatabasePort })},
	"BERTH_DEV_TEMPORAL_PORT":              {value: "7233", help: "--dev: port of Temporal, 0 for a free one", set: port(func(c *Config) *int { return &c.Dev.TemporalPort })},
	"BERTH_DEV_UI_PORT":                    {value: "8233", help: "--dev: port of Temporal's UI, 0 for a free one", set: port(func(c *Config) *int { return &c.Dev.UIPort })},
	"BERTH_DEV_ODL_PORT":                   {value: "8181", help: "--dev: port of the OpenDaylight stand-in, 0 for a free one", set: port(func(c *Config) *int { return &c.Dev.ODLPort })},
	"BERTH_DEMO":                           {value: "on", help: "--dev: run `starter demo` once everything is up, or off", set: onOff(func(c *Config) *bool { return &c.Dev.Demo })},
	"OS_AUTH_URL":                          {help: "Keystone's URL, as http://host:5000/v3", set: address(func(c *Config) *string { return &c.Service.AuthURL })},
	"OS_USERNAME":                          {help: "Keystone: name of berth's service user", set: text(func(c *Config) *string { return &c.Service.Username })},
	"OS_PASSWORD":                          {help: "Keystone: password of the service user", secret: true, set: text(func(c *Config) *string { return &c.Service.Password })},
	"OS_PROJECT_NAME":                      {help: "Keystone: project of the service user", set: text(func(c *Config) *string { return &c.Service.Project })},
	"OS_USER_DOMAIN_NAME":                  {value: "Default", help: "Keystone: domain of the service user", set: text(func(c *Config) *string { return &c.Service.UserDomain })},
	"OS_PROJECT_DOMAIN_NAME":               {value: "Default", help: "Keystone: domain of that project", set: text(func(c *Config) *string { return &c.Service.ProjectDomain })},
	"OS_REGION_NAME":                       {help: "Keystone: region of the service catalog", set: text(func(c *Config) *string { return &c.Service.Region })},
	"OS_CACERT":                            {help: "PEM file with Keystone's certificate authority", set: text(func(c *Config) *string { return &c.Service.CAFile })},

	"BERTH_CANDIDATES_MAX":    {value: "0", help: "allocation candidates for one request at most; 0: as many as it may cost", set: maximum(func(c *Config) *int { return &c.Candidates.Max })},
	"BERTH_CANDIDATES_ORDER":  {value: "breadth-first", help: "breadth-first: one allocation candidate of each tree of providers in turn; depth-first: all of one tree before the next", set: order},
	"BERTH_CANDIDATES_RANDOM": {value: "off", help: "on: another choice of allocation candidates each time there are more than the limit", set: onOff(func(c *Config) *bool { return &c.Candidates.Random })},

	"BERTH_CORS_ALLOWED_ORIGIN":    {help: "origins whose pages may call the APIs from a browser, as https://host[:port], with commas; * for any; without it there is no CORS", set: origins},
	"BERTH_CORS_ALLOW_CREDENTIALS": {value: "on", help: "CORS: pages may send credentials, or off", set: onOff(func(c *Config) *bool { return &c.CORS.Credentials })},
	"BERTH_CORS_ALLOW_HEADERS":     {value: "X-Auth-Token,OpenStack-API-Version,X-OpenStack-Request-ID,X-Project-Id,X-Roles", help: "CORS: headers that pages may send", set: list(func(c *Config) *[]string { return &c.CORS.Headers })},
	"BERTH_CORS_ALLOW_METHODS":     {value: "GET,PUT,POST,DELETE,PATCH", help: "CORS: methods that pages may use", set: list(func(c *Config) *[]string { return &c.CORS.Methods })},
	"BERTH_CORS_EXPOSE_HEADERS":    {value: "OpenStack-API-Version,X-OpenStack-Request-ID,Location,Retry-After", help: "CORS: headers that pages may read", set: list(func(c *Config) *[]string { return &c.CORS.Expose })},
	"BERTH_CORS_MAX_AGE":           {value: "1h", help: "CORS: how long browsers remember what pages may do", set: duration(func(c *Config) *time.Duration { return &c.CORS.MaxAge })},
}

// Variables names everything that berth can be told, in order.
func Variables() []string { return slices.Sorted(maps.Keys(variables)) }

// Usage prints every variable with its default and meaning.
func Usage(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		v := variables[name]
		if v.help != "" {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", name, v.value, v.help)
		}
	}
	_ = t.Flush()
}

func (v variable) shown(value string) string {
	if v.secret {
		return "(secret)"
	}
	return value
}

// ParseRoles reads a comma-separated list of roles.
func ParseRoles(s string) ([]string, error) {
	known := []string{API, Relay, Temporal, RPC}
	var roles []string
	for role := range strings.SplitSeq(s, ",") {
		role = strings.TrimSpace(role)
		if !slices.Contains(known, role) {
			return nil, fmt.Errorf("unknown role %q: did you mean %s? (roles are %s)", role, nearest(role, known), strings.Join(known, ", "))
		}
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return roles, nil
}

func listen(c *Config, s string) error {
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("must be host:port")
	}
	c.Listen = net.JoinHostPort(host, p)
	var n int
	return parsePort(&n, p)
}

func auth(c *Config, s string) error {
	c.Auth = s
	if s != Noauth && s != Keystone {
		return errors.New("must be noauth or keystone")
	}
	return nil
}

func level(into *slog.Level, s string) error {
	if into.UnmarshalText([]byte(s)) != nil {
		return errors.New("must be debug, info, warn or error")
	}
	return nil
}

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, s string) error {
		*field(c) = s
		return nil
	}
}

// path reads the path of a URL.
func path(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, s string) error {
		if !strings.HasPrefix(s, "/") {
			return errors.New("must be a path, which begins with a slash")
		}
		*field(c) = s
		return nil
	}
}

// address reads an http or https URL; empty is none.
func address(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, s string) error {
		if s == "" {
			return nil
		}
		if u := site(s); u == nil {
			return errors.New("must be an http or https URL")
		}
		*field(c) = strings.TrimRight(s, "/")
		return nil
	}
}

// site is an http or https URL, nil for anything else.
func site(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil
	}
	return u
}

// brokers reads the URLs of a cluster.
func brokers(c *Config, s string) error {
	_ = list(func(c *Config) *[]string { return &c.RabbitMQ })(c, s)
	for _, broker := range c.RabbitMQ {
		u, err := url.Parse(broker)
		if err != nil || u.Scheme != "amqp" && u.Scheme != "amqps" || u.Host == "" {
			return errors.New("must be amqp://user:password@host:port/vhost, or several of them with commas")
		}
	}
	return nil
}

func list(field func(*Config) *[]string) func(*Config, string) error {
	return func(c *Config, s string) error {
		for item := range strings.SplitSeq(s, ",") {
			if item = strings.TrimSpace(item); item != "" {
				*field(c) = append(*field(c), item)
			}
		}
		return nil
	}
}

// origins reads a list as browsers write them in Origin, which is compared as it is.
func origins(c *Config, s string) error {
	_ = list(func(c *Config) *[]string { return &c.CORS.Origins })(c, s)
	for _, origin := range c.CORS.Origins {
		if u := site(origin); origin != "*" && (u == nil || origin != u.Scheme+"://"+u.Host || u.Host != strings.ToLower(u.Host)) {
			return fmt.Errorf("%q must be scheme://host[:port] in lower case, without a path, or *", origin)
		}
	}
	return nil
}

func duration(field func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return errors.New("must be a positive duration such as 10s")
		}
		*field(c) = d
		return nil
	}
}

func count(field func(*Config) *int64) func(*Config, string) error {
	return func(c *Config, s string) error {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n <= 0 {
			return errors.New("must be a positive whole number")
		}
		*field(c) = n
		return nil
	}
}

func maximum(field func(*Config) *int) func(*Config, string) error {
	return func(c *Config, s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return errors.New("must be a whole number, 0 for no maximum")
		}
		*field(c) = n
		return nil
	}
}

func order(c *Config, s string) error {
	c.Candidates.DepthFirst = s == "depth-first"
	if s != "breadth-first" && s != "depth-first" {
		return errors.New("must be breadth-first or depth-first")
	}
	return nil
}

// deadlines reads one duration for all entities, or several by entity.
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
			return fmt.Errorf("%q is there twice", entity)
		}
		c.Port.Deadlines[entity] = limit
	}
	return nil
}

// quota reads NAME=NUMBER, with commas.
func quota(c *Config, s string) error {
	c.Networking.Quota = map[string]int64{}
	if s == "off" {
		return nil
	}
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < -1 {
			return fmt.Errorf("%q must be NAME=NUMBER, -1 for any number", part)
		}
		if _, twice := c.Networking.Quota[name]; twice {
			return fmt.Errorf("%q is there twice", name)
		}
		c.Networking.Quota[name] = n
	}
	return nil
}

func overdue(c *Config, s string) error {
	c.Port.Fatal = s == "error"
	if s != "wait" && s != "error" {
		return errors.New("must be wait or error")
	}
	return nil
}

// name reads what stands for a project or a user.
func name(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, s string) error {
		if s == "" || len(s) > 255 || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return errors.New("must be a name of 1 to 255 bytes")
		}
		*field(c) = s
		return nil
	}
}

// durationOrOff reads a duration; off is 0.
func durationOrOff(field func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, s string) error {
		if s == "off" {
			*field(c) = 0
			return nil
		}
		return duration(field)(c, s)
	}
}

func port(field func(*Config) *int) func(*Config, string) error {
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

func onOff(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, s string) error {
		if s != "on" && s != "off" {
			return errors.New("must be on or off")
		}
		*field(c) = s == "on"
		return nil
	}
}

// nearest is the candidate with the fewest edits from s.
func nearest(s string, candidates []string) string {
	return slices.MinFunc(candidates, func(a, b string) int { return edits(s, a) - edits(s, b) })
}

// edits counts the insertions, deletions and replacements between two words.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
