package config_test

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/config"
)

// load returns the Config of an environment that must have no errors.
func load(t *testing.T, environ ...string) config.Config {
	t.Helper()
	c, err := config.Load(environ)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// file writes a settings file and returns the file's path.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "berth.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad_EmptyEnvironmentGivesTheDefaults(t *testing.T) {
	t.Parallel()
	want := config.Config{
		Port:           config.Port{Deadlines: map[string]time.Duration{"": 5 * time.Minute}},
		Listen:         "127.0.0.1:8778",
		LogLevel:       slog.LevelInfo,
		LogFormat:      config.LogText,
		LogReads:       1,
		AnswerTimeout:  3 * time.Second,
		RequestTimeout: 30 * time.Second,
		ProjectRate:    config.Rate{Burst: 100},
		AgentRate:      config.Rate{PerSecond: 50, Burst: 1000},
		Connections:    config.Connections{Total: 2000, PerAddress: 250, Streams: 100},
		Traces: config.Traces{
			Exporter: "otlp",
			Protocol: "http/protobuf",
			Sampler:  "parentbased_always_on",
			Ratio:    1,
			Service:  "berth",
		},
		Roles:  []string{config.API, config.Relay, config.Temporal},
		Policy: config.Policy{EnforceNewDefaults: true},
		CORS: config.CORS{
			Credentials: true,
			MaxAge:      time.Hour,
			Methods:     []string{"GET", "PUT", "POST", "DELETE", "PATCH"},
			Headers: []string{
				"X-Auth-Token",
				"OpenStack-API-Version",
				"X-OpenStack-Request-ID",
				"X-Project-Id",
				"X-Roles",
			},
			Expose: []string{"OpenStack-API-Version", "X-OpenStack-Request-ID", "Location", "Retry-After"},
		},
		ODL: config.ODL{
			Username:       "admin",
			Password:       "admin",
			Timeout:        10 * time.Second,
			PollInterval:   30 * time.Second,
			HostConfigPath: "/restconf/operational/neutron:neutron/hostconfigs",
			Concurrency:    64,
			RetryCount:     5,
			AuditInterval:  time.Hour,
			AuditRepair:    true,
		},
		IncompleteConsumer: config.IncompleteConsumer{
			Project: "00000000-0000-0000-0000-000000000000",
			User:    "00000000-0000-0000-0000-000000000000",
		},
		Journal: config.Journal{Retention: 168 * time.Hour},
		Audit:   config.Audit{Enabled: true},
		Lease: config.Lease{
			BeforeEnd:       time.Hour,
			RetryTimeout:    10 * time.Minute,
			HealingInterval: time.Hour,
			Quota: map[string]int64{
				"lease":                 500,
				"reservation":           1000,
				"reservation_per_lease": 100,
			},
		},
		History: config.History{MaxAge: 720 * time.Hour, MaxRows: 5000000},
		Networking: config.Networking{
			PhysicalMTU:     1500,
			TraditionalDHCP: true,
			EnableNewAgents: true,
			Quota: map[string]int64{
				"network":             100,
				"subnet":              100,
				"port":                500,
				"security_group":      10,
				"security_group_rule": 100,
			},
		},
		Service: config.Service{
			UserDomain:    "Default",
			ProjectDomain: "Default",
		},
		KeystoneGrace: 5 * time.Minute,
		Client:        config.Client{Token: "admin"},
		Dev: config.Dev{
			Data:         ".berth",
			DatabasePort: 8779,
			TemporalPort: 7233,
			UIPort:       8233,
			ODLPort:      8181,
			Demo:         true,
		},
	}
	if d := cmp.Diff(want, load(t, "HOME=/root", "BERTH_TEST_ANYTHING=x", "BERTH_DEMO=")); d != "" {
		t.Errorf("load an environment without settings: got other defaults (-want +got):\n%s", d)
	}
}

func TestLoad_EnvironmentWinsOverFile(t *testing.T) {
	t.Parallel()
	path := file(t,
		"listen: localhost:1\nroles: [api, relay]\ndemo: false\nodl_timeout: 3s\ndev_ui_port: 0\n")

	got := load(t, "BERTH_CONFIG="+path, "BERTH_LISTEN=[::1]:2")

	want := load(t, "BERTH_LISTEN=[::1]:2",
		"BERTH_ROLES=api,relay", "BERTH_DEMO=off", "BERTH_ODL_TIMEOUT=3s", "BERTH_DEV_UI_PORT=0")
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got.Listen != "[::1]:2" || got.Dev.Demo || len(got.Roles) != 2 || got.ODL.Timeout != 3*time.Second {
		t.Errorf(
			"load an environment and a file: got %+v, want BERTH_LISTEN of the environment and the other settings of the file",
			got,
		)
	}
}

func TestLoad_TrustedProxies(t *testing.T) {
	t.Parallel()
	want := []netip.Prefix{
		netip.MustParsePrefix("192.0.2.7/32"),
		netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("2001:db8::1/128"),
	}
	if d := cmp.Diff(want, load(t, "BERTH_TRUSTED_PROXIES=192.0.2.7, 10.0.0.0/8,2001:db8::1").TrustedProxies, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
		t.Error(d)
	}
	if none := load(t).TrustedProxies; none != nil {
		t.Errorf("trusted proxies without the setting: got %v, want none", none)
	}
}

func TestLoad_NamesEachWrongSetting(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ []string
		file    string
		want    []string
	}{
		"unknown variable":      {environ: []string{"BERTH_LISTN=:1"}, want: []string{"unknown variable BERTH_LISTN", "did you mean BERTH_LISTEN?"}},
		"unknown key":           {file: "odl_pasword: x", want: []string{`unknown key "odl_pasword"`, `did you mean "odl_password"?`}},
		"file names a file":     {file: "config: x", want: []string{`unknown key "config"`}},
		"map in file":           {file: "odl: {url: x}", want: []string{`unknown key "odl"`}},
		"map for a value":       {file: "listen: {host: x}", want: []string{"listen: must be one value"}},
		"broken file":           {file: "listen: [", want: []string{"BERTH_CONFIG="}},
		"missing file":          {environ: []string{"BERTH_CONFIG=/nonexistent/x"}, want: []string{"BERTH_CONFIG: ", "no such file"}},
		"wrong role":            {environ: []string{"BERTH_ROLES=api,relais"}, want: []string{"BERTH_ROLES=", `unknown role "relais": did you mean relay?`}},
		"address without port":  {environ: []string{"BERTH_LISTEN=127.0.0.1"}, want: []string{"BERTH_LISTEN=127.0.0.1: must be host:port"}},
		"port too large":        {environ: []string{"BERTH_DEV_UI_PORT=70000"}, want: []string{"BERTH_DEV_UI_PORT=70000: must be a port"}},
		"no retry":              {environ: []string{"BERTH_ODL_RETRY_COUNT=0"}, want: []string{"must be a positive whole number"}},
		"wrong duration":        {environ: []string{"BERTH_ODL_TIMEOUT=10"}, want: []string{"must be a positive duration"}},
		"long request":          {environ: []string{"BERTH_REQUEST_TIMEOUT=51s"}, want: []string{"must be at most 50s"}},
		"wrong deadline":        {environ: []string{"BERTH_PORT_DEADLINE=L2=5"}, want: []string{"BERTH_PORT_DEADLINE=L2=5: must be a positive duration"}},
		"quota without number":  {environ: []string{"BERTH_QUOTA=port"}, want: []string{`"port" must be NAME=NUMBER`}},
		"lease quota, no limit": {environ: []string{"BERTH_LEASE_QUOTA=lease=-2"}, want: []string{`BERTH_LEASE_QUOTA=lease=-2: "lease=-2" must be NAME=NUMBER`}},
		"quota given twice":     {environ: []string{"BERTH_QUOTA=port=1,port=2"}, want: []string{`"port" is given twice`}},
		"VLANs without the end": {environ: []string{"BERTH_NETWORK_VLAN_RANGES=p1,p2:7"}, want: []string{`"p2:7" must be NETWORK:LOW:HIGH`}},
		"VLANs out of range":    {environ: []string{"BERTH_NETWORK_VLAN_RANGES=p1:1:4095"}, want: []string{"VLAN IDs from 1 to 4094"}},
		"VLANs backwards":       {environ: []string{"BERTH_NETWORK_VLAN_RANGES=p1:9:8"}, want: []string{"must be NETWORK:LOW:HIGH"}},
		"VLANs of no network":   {environ: []string{"BERTH_NETWORK_VLAN_RANGES=:1:9"}, want: []string{"must be NETWORK:LOW:HIGH"}},
		"deadline given twice":  {environ: []string{"BERTH_PORT_DEADLINE=L2=5m,L2=6m"}, want: []string{"the deadline L2 is given twice"}},
		"wrong overdue":         {environ: []string{"BERTH_PORT_OVERDUE=delete"}, want: []string{"must be wait or error"}},
		"wrong URL":             {environ: []string{"BERTH_ODL_URL=odl:8181"}, want: []string{"BERTH_ODL_URL=odl:8181: must be an http or https URL"}},
		"neither on nor off":    {environ: []string{"BERTH_DEMO=maybe"}, want: []string{"must be on or off"}},
		"wrong level":           {environ: []string{"BERTH_LOG_LEVEL=loud"}, want: []string{"must be debug, info"}},
		"wrong auth":            {environ: []string{"BERTH_AUTH=none"}, want: []string{"must be noauth or keystone"}},
		"noauth, all addresses": {environ: []string{"BERTH_AUTH=noauth", "BERTH_LISTEN=:8778"}, want: []string{"BERTH_LISTEN=:8778", "loopback only"}},
		"noauth, not loopback":  {environ: []string{"BERTH_LISTEN=192.0.2.1:8778"}, want: []string{"loopback only"}},
		"noauth, a host name":   {environ: []string{"BERTH_LISTEN=localhost.example:8778"}, want: []string{"loopback only"}},
		"certificate, no key":   {environ: []string{"BERTH_TLS_CERT_FILE=/c"}, want: []string{"BERTH_TLS_CERT_FILE and BERTH_TLS_KEY_FILE belong together"}},
		"key, no certificate":   {environ: []string{"BERTH_TLS_KEY_FILE=/k"}, want: []string{"BERTH_TLS_CERT_FILE and BERTH_TLS_KEY_FILE belong together"}},
		"client CA without TLS": {environ: []string{"BERTH_TLS_CLIENT_CA_FILE=/c"}, want: []string{"BERTH_TLS_CLIENT_CA_FILE needs BERTH_TLS_CERT_FILE"}},
		"client key alone":      {environ: []string{"BERTH_CLIENT_KEY_FILE=/k"}, want: []string{"BERTH_CLIENT_CERT_FILE and BERTH_CLIENT_KEY_FILE belong together"}},
		"operators, no port":    {environ: []string{"BERTH_OPERATOR_LISTEN=127.0.0.1"}, want: []string{"BERTH_OPERATOR_LISTEN=127.0.0.1: must be host:port"}},
		"no BERTH_AUTH":         {environ: []string{"BERTH_AUTH=", "BERTH_LISTEN=:8778"}, want: []string{"without BERTH_AUTH=keystone", "loopback only"}},
		"noauth for operators":  {environ: []string{"BERTH_OPERATOR_LISTEN=:8777"}, want: []string{"BERTH_OPERATOR_LISTEN=:8777", "loopback only"}},
		"keystone without URL":  {environ: []string{"BERTH_AUTH=keystone"}, want: []string{"needs OS_AUTH_URL"}},
		"project rate":          {environ: []string{"BERTH_PROJECT_RATE=NaN"}, want: []string{"BERTH_PROJECT_RATE", "from 0.001"}},
		"agent rate":            {environ: []string{"BERTH_AGENT_RATE=-1"}, want: []string{"BERTH_AGENT_RATE", "from 0.001"}},
		"agent burst":           {environ: []string{"BERTH_AGENT_BURST=10001"}, want: []string{"BERTH_AGENT_BURST", "from 1 to 10000"}},
		"project burst":         {environ: []string{"BERTH_PROJECT_BURST=0"}, want: []string{"BERTH_PROJECT_BURST", "from 1 to 10000"}},
		"origin with path":      {environ: []string{"BERTH_CORS_ALLOWED_ORIGIN=http://a,https://b/"}, want: []string{"https://b/", "scheme://host"}},
		"every address a proxy": {environ: []string{"BERTH_TRUSTED_PROXIES=10.0.0.1,0.0.0.0/0"}, want: []string{`"0.0.0.0/0" contains every client`}},
		"every IPv6 a proxy":    {environ: []string{"BERTH_TRUSTED_PROXIES=::/0"}, want: []string{`"::/0" contains every client`}},
		"proxy by name":         {environ: []string{"BERTH_TRUSTED_PROXIES=10.0.0.1,haproxy"}, want: []string{`"haproxy" must be an IP address`}},
		"origin without host":   {environ: []string{"BERTH_CORS_ALLOWED_ORIGIN=null"}, want: []string{"BERTH_CORS_ALLOWED_ORIGIN"}},
		"two errors at once":    {environ: []string{"BERTH_DEMO=x", "BERTH_FOO=y"}, want: []string{"BERTH_DEMO", "BERTH_FOO"}},
		"duplicate file keys":   {file: "demo: on\ndemo: off", want: []string{"already defined"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.file != "" {
				c.environ = append(c.environ, "BERTH_CONFIG="+file(t, c.file))
			}
			_, err := config.Load(c.environ)
			if err == nil {
				t.Fatal("load a wrong setting: got no error, want one")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q: want it to contain %q", err, want)
				}
			}
		})
	}
}

func TestLoad_SecretsCanBeInFiles(t *testing.T) {
	t.Parallel()
	path := file(t, "postgres://berth:s3cret@db/berth\n")
	want := load(t, "BERTH_DATABASE_URL=postgres://berth:s3cret@db/berth")
	if d := cmp.Diff(want, load(t, "BERTH_DATABASE_URL_FILE="+path, "BERTH_NOVA_TOKEN_FILE=")); d != "" {
		t.Errorf("load a secret from a file (-in the environment +in a file):\n%s", d)
	}
	for name, c := range map[string]struct {
		environ []string
		want    string
	}{
		"missing file":           {[]string{"BERTH_NOVA_TOKEN_FILE=/nonexistent/x"}, "BERTH_NOVA_TOKEN_FILE: open /nonexistent/x"},
		"empty file":             {[]string{"BERTH_NOVA_TOKEN_FILE=" + file(t, "\n")}, "BERTH_NOVA_TOKEN_FILE: the file"},
		"value and file":         {[]string{"BERTH_NOVA_TOKEN_FILE=" + path, "BERTH_NOVA_TOKEN=x"}, "BERTH_NOVA_TOKEN and BERTH_NOVA_TOKEN_FILE are both set"},
		"setting without secret": {[]string{"BERTH_LISTEN_FILE=" + path}, "unknown variable BERTH_LISTEN_FILE"},
	} {
		_, err := config.Load(c.environ)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got error %v, want one with %q and without the content of the file",
				name, err, c.want)
		}
	}
}

func TestLoad_SplitsListsAtCommas(t *testing.T) {
	t.Parallel()
	path := file(t, "cors_allowed_origin: [https://a.example.com, '*']\ncors_max_age: 90s\n")
	got := load(t, "BERTH_CONFIG="+path, "BERTH_CORS_ALLOW_METHODS=GET, ,PUT").CORS
	want := load(t).CORS
	want.Origins, want.Methods, want.MaxAge = []string{
		"https://a.example.com",
		"*",
	}, []string{
		"GET",
		"PUT",
	}, 90*time.Second
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestLoad_PortDeadlineForAllOrByEntity(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]config.Port{
		"":                   {Deadlines: map[string]time.Duration{"": 5 * time.Minute}},
		"off":                {Deadlines: map[string]time.Duration{}},
		"90s":                {Deadlines: map[string]time.Duration{"": 90 * time.Second}},
		"L2=1m, DHCP=2m,10m": {Deadlines: map[string]time.Duration{"": 10 * time.Minute, "L2": time.Minute, "DHCP": 2 * time.Minute}},
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(want, load(t, "BERTH_PORT_DEADLINE="+value).Port); d != "" {
				t.Error(d)
			}
		})
	}
	if !load(t, "BERTH_PORT_OVERDUE=error").Port.OverdueIsError {
		t.Error("load BERTH_PORT_OVERDUE=error: got OverdueIsError false, want true")
	}
}

func TestLoad_KeystoneMayListenOnAnyAddress(t *testing.T) {
	t.Parallel()
	c := load(t, "BERTH_AUTH=keystone", "BERTH_LISTEN=0.0.0.0:8778",
		"OS_AUTH_URL=http://192.0.2.1/v3/", "OS_USERNAME=berth")
	want := config.Service{
		AuthURL:       "http://192.0.2.1/v3",
		Username:      "berth",
		UserDomain:    "Default",
		ProjectDomain: "Default",
	}
	if d := cmp.Diff(want, c.Service); d != "" {
		t.Error(d)
	}
}

func TestRequiresSignatures_UnlessNoauthOrOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		auth, signatures string
		want             bool
	}{
		{config.Noauth, "", false}, {config.Noauth, config.SignaturesRequired, true}, {config.Noauth, config.SignaturesOff, false},
		{config.Keystone, "", true}, {config.Keystone, config.SignaturesRequired, true}, {config.Keystone, config.SignaturesOff, false},
	} {
		environ := []string{
			"BERTH_DATABASE_URL=postgres://u@h/d",
			"BERTH_AUTH=" + c.auth,
			"OS_AUTH_URL=http://k:5000/v3",
			"BERTH_AGENT_SIGNATURES=" + c.signatures,
		}
		got, err := config.Load(environ)
		if err != nil || got.RequiresSignatures() != c.want {
			t.Errorf("BERTH_AUTH=%s and BERTH_AGENT_SIGNATURES=%q: got %v, error %v, want %v",
				c.auth, c.signatures, got.RequiresSignatures(), err, c.want)
		}
	}
	if _, err := config.Load([]string{"BERTH_AGENT_SIGNATURES=maybe"}); err == nil {
		t.Error("BERTH_AGENT_SIGNATURES=maybe: got no error, want one")
	}
}

func TestLoad_RabbitMQIdentitiesNeedABroker(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{"BERTH_RABBITMQ_IDENTITIES=maybe", "BERTH_RABBITMQ_IDENTITIES=required"} {
		if _, err := config.Load([]string{"BERTH_DATABASE_URL=postgres://u@h/d", broken}); err == nil ||
			!strings.Contains(err.Error(), "BERTH_RABBITMQ_IDENTITIES") {
			t.Errorf("%s: got error %v, want one that names the setting", broken, err)
		}
	}
	if c := load(t, "BERTH_RABBITMQ_IDENTITIES=required", "BERTH_RABBITMQ_URL=amqp://u:p@h/"); !c.RabbitMQIdentities {
		t.Error("BERTH_RABBITMQ_IDENTITIES=required with a broker: got false, want true")
	}
}

func TestLoad_ErrorsDoNotContainSecrets(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"BERTH_ODL_PASSWORD", "BERTH_NOVA_TOKEN", "BERTH_DATABASE_URL"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load([]string{name + "=hunter2", "BERTH_DEMO=x"})
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf(
					"load a wrong setting beside a secret: got error %v, want an error without the secret's value",
					err,
				)
			}
		})
	}
}

func TestLoad_VLANRangesOfPhysicalNetworks(t *testing.T) {
	t.Parallel()
	want := []config.VLANRange{
		{PhysicalNetwork: "p1", Low: 1, High: 9},
		{PhysicalNetwork: "p2", Low: 1, High: 4094},
		{PhysicalNetwork: "p1", Low: 20, High: 20},
	}
	if d := cmp.Diff(want, load(t, "BERTH_NETWORK_VLAN_RANGES=p1:1:9, p2,p1:20:20").Networking.VLANRanges); d != "" {
		t.Error(d)
	}
}

// TestLoad_URLsWithAUserAreRefused checks every setting whose value is the URL of a service with HTTP. The
// database and RabbitMQ have their credentials in the URL, so their settings are secret.
func TestLoad_URLsWithAUserAreRefused(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, section := range config.Sections() {
		for _, s := range section.Settings {
			if s.Unit != "URL" && s.Unit != "list of origins" || s.Secret {
				continue
			}
			checked++
			for _, value := range []string{"http://ann:hunter2@host.example/x", "https://hunter2@host.example", "http://ann:hun/ter2@host.example/x", "ann:hunter2@host.example:1"} {
				_, err := config.Load([]string{s.Name + "=" + value})
				if err == nil || !strings.Contains(err.Error(), s.Name+"=") ||
					!strings.Contains(err.Error(), "host.example") ||
					strings.Contains(err.Error(), "ter2") ||
					strings.Contains(err.Error(), "ann") {
					t.Errorf(
						"%s=%s: got error %v, want one that names the setting and the host, but neither the user nor the password",
						s.Name, value, err,
					)
				}
			}
		}
	}
	if checked < 12 {
		t.Errorf("settings with a URL: got %d, want at least 12", checked)
	}
}

// The query of a webhook's URL can have a token, so an error of the setting must not show it.
func TestLoad_ErrorsDoNotContainTheQueryOfAURL(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"BERTH_LEASE_WEBHOOK_URL", "BERTH_PROVISIONING_WEBHOOK_URL", "BERTH_LEASE_ENFORCEMENT_URL"} {
		for _, value := range []string{"ftp://host.example/x?token=hunter2", "host.example/x?token=hunter2"} {
			_, err := config.Load([]string{name + "=" + value})
			if err == nil || !strings.Contains(err.Error(), "host.example/x?(secret)") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s=%s: got error %v, want one with the URL and without the query", name, value, err)
			}
		}
	}
}

func TestLoad_EncryptionKeys(t *testing.T) {
	t.Parallel()
	first, second := strings.Repeat("A", 43)+"=", strings.Repeat("B", 42)+"A="
	for name, c := range map[string]struct {
		value       string
		keys        int
		decryptOnly bool
		err         string
	}{
		"one":          {first, 1, false, ""},
		"two":          {first + ", " + second, 2, false, ""},
		"lines":        {first + "\n" + second, 2, false, ""},
		"only decrypt": {"off," + first, 1, true, ""},
		"off last":     {first + ",off", 0, false, "the word off must be in front of all keys"},
		"off alone":    {"off", 0, false, "there is no key"},
		"short":        {first + ",QUJD", 0, false, "key 2 must have 32 bytes in Base64"},
		"not Base64":   {"swordfish", 0, false, "key 1 must have 32 bytes in Base64"},
		"twice":        {first + "," + first, 0, false, "key 2 is in the list twice"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := config.Load([]string{"BERTH_TEMPORAL_ENCRYPTION_KEYS=" + c.value})
			switch {
			case c.err == "" && (err != nil || len(got.Encryption.Keys) != c.keys ||
				got.Encryption.DecryptOnly != c.decryptOnly):
				t.Errorf("load keys: got %d keys, error %v; want %d keys", len(got.Encryption.Keys), err, c.keys)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) ||
				strings.Contains(err.Error(), "swordfish") || strings.Contains(err.Error(), "AAAA")):
				t.Errorf("load wrong keys: got error %v, want %q without a key", err, c.err)
			}
		})
	}
}

func TestLoad_NameOfTheWorkerDeployment(t *testing.T) {
	t.Parallel()
	for value, valid := range map[string]bool{"berth": true, "berth.prod": false, "a:b": false, "__a": false} {
		got, err := config.Load([]string{"BERTH_WORKER_DEPLOYMENT=" + value})
		if (err == nil) != valid || valid && got.WorkerDeployment.Name != value {
			t.Errorf("load the name %q: got %+v, error %v; want that it is valid: %t", value, got.WorkerDeployment, err, valid)
		}
	}
}
