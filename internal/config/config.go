// Package config reads the settings of a process from the environment and an optional file, once, at the
// start of the process. An unknown environment variable with berth's prefix or an unknown key of the file is
// an error, so that the user notices a misspelt setting. Temporal's package envconfig, and not package
// config, reads Temporal's own settings (TEMPORAL_ADDRESS and so on).
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"
)

// Roles of a worker process.
const (
	API      = "api"      // serves HTTP
	Relay    = "relay"    // delivers notes (rows of the outbox in the database) to Temporal
	Temporal = "temporal" // runs workflows and activities
	RPC      = "rpc"      // serves Neutron's agents over RabbitMQ
)

// Kinds of authentication (BERTH_AUTH).
const (
	Noauth   = "noauth"
	Keystone = "keystone"
)

// Values of BERTH_LOG_FORMAT.
const (
	LogText = "text"
	LogJSON = "json"
)

// Values of BERTH_AGENT_SIGNATURES.
const (
	SignaturesOff      = "off"
	SignaturesRequired = "required"
)

// Config has all settings of a process.
type Config struct {
	Listen string // host:port of the HTTP listener
	// host:port of a separate listener for operators; empty: Listen serves everything
	OperatorListen string
	TLS            TLS
	DatabaseURL    string
	DatabasePooler string        // URL of the database through a pooler in transaction mode; empty: none
	AnswerTimeout  time.Duration // after which the database counts as hung; 0: never
	RequestTimeout time.Duration
	TrustedProxies []netip.Prefix // reverse proxies whose X-Forwarded headers count
	// URL of Temporal's UI, to which the console links, and which may call the codec server; empty: none
	TemporalUI         string
	Encryption         Encryption
	WorkerDeployment   WorkerDeployment
	ProjectRate        Rate
	AgentRate          Rate // of the agents of one host, over HTTP and in its virtual host
	Connections        Connections
	Auth               string // Noauth, Keystone, or empty: not set
	Policy             Policy
	CORS               CORS
	Roles              []string
	LogLevel           slog.Level
	LogFormat          string  // LogText or LogJSON
	LogReads           float64 // share of the successful GET and HEAD requests that the log names
	ODL                ODL
	Nova               Nova
	RabbitMQ           []string // URLs of the brokers of one cluster; empty: no RPC with agents
	RabbitMQCAFile     string   // PEM file
	RabbitMQIdentities bool     // agents are served only in the virtual hosts of their hosts
	Neutron            Neutron
	History            History
	Journal            Journal
	Audit              Audit
	IncompleteConsumer IncompleteConsumer
	Port               Port
	Networking         Networking
	Lease              Lease
	Candidates         Candidates
	Service            Service
	Traces             Traces
	KeystoneGrace      time.Duration // how long the API stays ready without Keystone
	Client             Client
	Dev                Dev
}

// TLS has the PEM files with which the HTTP listeners use TLS. If CertFile and KeyFile are empty, the
// listeners do not use TLS.
type TLS struct {
	CertFile, KeyFile string
	ClientCAFile      string // certificate authorities of clients; empty: clients need no certificate
}

// WorkerDeployment is the version with which the Temporal workers of the process register in Temporal's
// Worker Versioning.
type WorkerDeployment struct {
	Name    string // empty: the workers are unversioned
	BuildID string // empty: the version of the program
}

// Encryption has the keys with which berth decrypts payloads in Temporal; no keys: berth neither encrypts
// nor decrypts.
type Encryption struct {
	Keys        [][]byte // 32 bytes each; the first one encrypts
	DecryptOnly bool     // berth encrypts nothing
}

// ODL has the settings of the OpenDaylight controller.
type ODL struct {
	URL, Username, Password string
	CAFile                  string // PEM file, trusted in addition to the system's certificate authorities
	Timeout                 time.Duration
	// between reads of features, host configurations and the status of ports
	PollInterval   time.Duration
	HostConfigPath string // URL path of the host configurations
	// features of the controller; empty: berth reads them from the controller
	Features      string
	SyncInterval  time.Duration // between periodic full syncs; 0: none
	AuditInterval time.Duration // between periodic audits; 0: none
	// a periodic audit that finds missing or different objects starts a full sync
	AuditRepair bool
	// maximum number of requests of one process that run at the same time
	Concurrency int
	// number of failures after which a journal entry gets the state failed
	RetryCount int
}

// Policy has the settings of the access rules.
type Policy struct {
	File            string // of Placement; empty: no policy file
	NetworkingFile  string // empty: no policy file
	ReservationFile string // empty: no policy file
	// false: a request is also allowed if the defaults of older OpenStack releases allow it
	EnforceNewDefaults bool
}

// Connections limits the connections and requests that clients may have open at the same time.
type Connections struct {
	Total      int // connections of one listener; 0: no limit
	PerAddress int // connections of one client address to one listener; 0: no limit
	Streams    int // requests on one connection with HTTP/2
}

// Rate limits the HTTP requests of each project or host.
type Rate struct {
	PerSecond float64 // 0: no limit
	Burst     int     // requests that one project or host may send at once
}

// CORS lists the origins of web pages that may call the APIs from a browser, and says what these pages may
// send and read. If CORS has no origin, no web page may call the APIs.
type CORS struct {
	Origins     []string // scheme://host[:port] each, or "*"
	Credentials bool
	Expose      []string // response headers that pages may read
	MaxAge      time.Duration
	Methods     []string
	Headers     []string // request headers that pages may send
}

// Nova has the URL of Nova's API and the token for it. berth uses the API for external events and for
// reserved instances and hosts. If the URL is empty, berth does not call Nova.
type Nova struct{ URL, Token string }

// Neutron has the URL of Neutron's API, which berth uses for reserved floating IPs. Requests to Neutron use
// the token of the settings for Nova. If the URL is empty, berth creates no floating IPs.
type Neutron struct{ URL string }

// Journal has the time for which berth keeps completed journal entries. If the time is 0, berth never deletes
// completed journal entries.
type Journal struct{ Retention time.Duration }

// Audit has the settings of the audit log.
type Audit struct {
	Enabled   bool          // requests write audit records
	Retention time.Duration // 0: berth never deletes audit records
}

// History has the limits of the generation history, which records every change of the generation of a
// resource provider or consumer. berth deletes the entries that exceed the maximum age or the maximum number
// of entries.
type History struct {
	MaxAge  time.Duration
	MaxRows int64
}

// Candidates has the settings of Placement's allocation candidates.
type Candidates struct {
	Max int // maximum number for one request; 0: limited only by the cost of the request
	// all candidates of one provider tree before the next tree; false: one of each tree in turn
	DepthFirst bool
	Random     bool // another random choice of candidates for each request
}

// Port has the deadlines of the provisioning blocks of ports. The map Deadlines has one deadline for each
// entity of a provisioning block (such as L2 or DHCP); the key "" stands for all entities without a key of
// their own. If OverdueIsError is true, a port's status becomes ERROR when a deadline of the port passes; if
// false, the port keeps its status and waits.
type Port struct {
	Deadlines      map[string]time.Duration
	OverdueIsError bool
	Webhook        Webhook // receives a notification when nothing blocks a port or trunk any more
}

// Networking has the settings of networks and agents.
type Networking struct {
	Quota map[string]int64 // default quota by resource; a resource that is not listed has no limit
	// physical networks with VLANs; empty: every physical network has all VLANs
	VLANRanges      []VLANRange
	PhysicalMTU     int  // MTU of physical networks in bytes
	TraditionalDHCP bool // DHCP agents serve the networks
	// availability zones of a network whose request names none; empty: any zone
	DefaultZones    []string
	EnableNewAgents bool // a new agent is enabled at its first report
	// SignaturesOff, SignaturesRequired, or empty: required unless Auth is Noauth
	AgentSignatures string
}

// VLANRange is a range of VLAN IDs on a physical network, both ends included. berth allocates these VLAN IDs
// to networks.
type VLANRange struct {
	PhysicalNetwork string
	Low, High       int
}

// Lease has the settings of leases.
type Lease struct {
	CleaningTime      time.Duration // pause between two leases of a host
	MaxDuration       time.Duration // 0: no limit
	MaxDurationExempt []string      // projects to which MaxDuration does not apply
	// quota of each project, by resource; a resource that is not listed has no limit
	Quota       map[string]int64
	QuotaExempt []string // projects without a quota
	// time between the before_end_lease event and the end of a lease; 0: no event
	BeforeEnd    time.Duration
	Snapshot     bool          // the value "default" of before_end means "snapshot"
	RandomHosts  bool          // random choice between equally suitable hosts
	RetryTimeout time.Duration // how long failed Nova and Neutron calls are retried
	Webhook      Webhook
	Enforcement  Enforcement
	Monitor      bool // poll Nova for hypervisors that are down
	// hosts that are down are replaced only in reservations that run or start within this time; 0: in all
	HealingInterval time.Duration
}

// Enforcement has the settings of the external service that allows or denies leases. If the URL is empty,
// berth allows all leases.
type Enforcement struct {
	URL, Token     string
	AllowOnFailure bool // allow a lease if the service fails
}

// Webhook has the URL to which berth sends notifications, and the token for it. If the URL is empty, berth
// sends no notifications.
type Webhook struct{ URL, Token string }

// IncompleteConsumer has the project and the user that berth gives to Placement consumers that were created
// without project and user: by a request with a microversion before 1.8, or by an import.
type IncompleteConsumer struct{ Project, User string }

// Service has berth's own service user at Keystone. berth uses its service user to validate the tokens of
// other users.
type Service struct {
	AuthURL, Username, Password, Project, UserDomain, ProjectDomain, Region, CAFile string
}

// Client has the API's URL and token for the command line. If the environment of the command line does not
// set one of the two variables, the command line takes the value from the address file of a development run,
// if the file has one. The other fields are for an API with TLS or with a separate address for operators.
type Client struct {
	URL, Token        string
	OperatorURL       string // of /operator/v1; empty: the address of BERTH_OPERATOR_LISTEN, or URL
	CAFile            string // PEM file, trusted in addition to the system's certificate authorities
	CertFile, KeyFile string // PEM files of the client certificate; empty: no client certificate
}

// Dev has the settings of the embedded services of `worker --dev`. A port of 0 stands for any free port.
type Dev struct {
	Data         string // folder of all data
	DatabasePort int
	TemporalPort int
	UIPort       int
	ODLPort      int
	Demo         bool
}

// RequiresSignatures reports whether berth refuses unsigned reports that agents send to workflows.
func (c Config) RequiresSignatures() bool {
	if c.Networking.AgentSignatures == "" {
		return c.Auth != Noauth
	}
	return c.Networking.AgentSignatures == SignaturesRequired
}

// check rejects settings that contradict each other, and settings that depend on another setting that is
// missing.
func (c Config) check() error {
	for _, l := range []struct{ setting, address string }{{"BERTH_LISTEN", c.Listen}, {"BERTH_OPERATOR_LISTEN", c.OperatorListen}} {
		if c.Auth != Keystone && l.address != "" && !IsLoopback(l.address) {
			return fmt.Errorf(
				"%s=%s: without BERTH_AUTH=keystone berth accepts every token, so the API may listen on loopback only; set BERTH_AUTH=keystone, or listen on 127.0.0.1",
				l.setting,
				l.address,
			)
		}
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		return errors.New(
			"BERTH_TLS_CERT_FILE and BERTH_TLS_KEY_FILE belong together: set both for TLS, or neither",
		)
	}
	if c.TLS.ClientCAFile != "" && c.TLS.CertFile == "" {
		return errors.New(
			"BERTH_TLS_CLIENT_CA_FILE needs BERTH_TLS_CERT_FILE and BERTH_TLS_KEY_FILE, because clients send certificates only over TLS",
		)
	}
	if (c.Client.CertFile == "") != (c.Client.KeyFile == "") {
		return errors.New(
			"BERTH_CLIENT_CERT_FILE and BERTH_CLIENT_KEY_FILE belong together: set both for a client certificate, or neither",
		)
	}
	if c.Lease.Monitor && c.Nova.URL == "" {
		return errors.New(
			"BERTH_LEASE_MONITOR=on needs BERTH_NOVA_URL, because Nova reports which hypervisors are down",
		)
	}
	if c.Auth == Keystone && c.Service.AuthURL == "" {
		return errors.New(
			"BERTH_AUTH=keystone needs OS_AUTH_URL and the other OS_ variables of berth's service user",
		)
	}
	if slices.Contains(c.Roles, RPC) && len(c.RabbitMQ) == 0 {
		return errors.New("the role rpc needs BERTH_RABBITMQ_URL")
	}
	if c.RabbitMQIdentities && len(c.RabbitMQ) == 0 {
		return errors.New("BERTH_RABBITMQ_IDENTITIES=required needs BERTH_RABBITMQ_URL")
	}
	return nil
}

// IsLoopback reports whether an address of the form host:port is localhost or a loopback address.
func IsLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
