package config_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/config"
)

func load(t *testing.T, environ ...string) config.Config {
	t.Helper()
	c, err := config.Load(environ)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "berth.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEmptyEnvironmentGivesTheDocumentedDefaults(t *testing.T) {
	t.Parallel()
	want := config.Config{
		Port:   config.Port{Deadlines: map[string]time.Duration{"": 5 * time.Minute}},
		Listen: "127.0.0.1:8778", Auth: config.Noauth, LogLevel: slog.LevelInfo,
		Roles:  []string{config.API, config.Relay, config.Temporal},
		Policy: config.Policy{EnforceNewDefaults: true},
		CORS: config.CORS{Credentials: true, MaxAge: time.Hour, Methods: []string{"GET", "PUT", "POST", "DELETE", "PATCH"},
			Headers: []string{"X-Auth-Token", "OpenStack-API-Version", "X-OpenStack-Request-ID", "X-Project-Id", "X-Roles"},
			Expose:  []string{"OpenStack-API-Version", "X-OpenStack-Request-ID", "Location", "Retry-After"}},
		ODL: config.ODL{Username: "admin", Password: "admin", Timeout: 10 * time.Second, Poll: 30 * time.Second,
			Hosts: "/restconf/operational/neutron:neutron/hostconfigs"},
		Incomplete: config.Incomplete{Project: "00000000-0000-0000-0000-000000000000", User: "00000000-0000-0000-0000-000000000000"},
		Journal:    config.Journal{Age: 168 * time.Hour},
		Lease:      config.Lease{BeforeEnd: time.Hour, Patience: 10 * time.Minute, Healing: time.Hour},
		History:    config.History{Age: 720 * time.Hour, Rows: 5000000},
		Networking: config.Networking{DHCP: true, NewAgents: true,
			Quota: map[string]int64{"network": 100, "subnet": 100, "port": 500, "security_group": 10, "security_group_rule": 100}},
		Service: config.Service{UserDomain: "Default", ProjectDomain: "Default"},
		Client:  config.Client{Token: "admin"},
		Dev:     config.Dev{Data: ".berth", DatabasePort: 8779, TemporalPort: 7233, UIPort: 8233, ODLPort: 8181, Demo: true},
	}
	if d := cmp.Diff(want, load(t, "HOME=/root", "BERTH_TEST_ANYTHING=x", "BERTH_DEMO=")); d != "" {
		t.Error(d)
	}
}

func TestEnvironmentWinsOverFile(t *testing.T) {
	t.Parallel()
	path := file(t, "listen: localhost:1\nroles: [api, relay]\ndemo: false\nodl_timeout: 3s\ndev_ui_port: 0\n")

	got := load(t, "BERTH_CONFIG="+path, "BERTH_LISTEN=[::1]:2")

	want := load(t, "BERTH_LISTEN=[::1]:2", "BERTH_ROLES=api,relay", "BERTH_DEMO=off", "BERTH_ODL_TIMEOUT=3s", "BERTH_DEV_UI_PORT=0")
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got.Listen != "[::1]:2" || got.Dev.Demo || len(got.Roles) != 2 || got.ODL.Timeout != 3*time.Second {
		t.Errorf("read as %+v", got)
	}
}

func TestWrongSettingIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ []string
		file    string
		say     []string
	}{
		"unknown variable":    {environ: []string{"BERTH_LISTN=:1"}, say: []string{"unknown variable BERTH_LISTN", "did you mean BERTH_LISTEN?"}},
		"unknown key":         {file: "odl_pasword: x", say: []string{`unknown key "odl_pasword"`, `did you mean "odl_password"?`}},
		"file names a file":   {file: "config: x", say: []string{`unknown key "config"`}},
		"map in file":         {file: "odl: {url: x}", say: []string{`unknown key "odl"`}},
		"map for a value":     {file: "listen: {host: x}", say: []string{"listen: must be one value"}},
		"broken file":         {file: "listen: [", say: []string{"BERTH_CONFIG="}},
		"missing file":        {environ: []string{"BERTH_CONFIG=/nonexistent/x"}, say: []string{"BERTH_CONFIG: ", "no such file"}},
		"wrong role":          {environ: []string{"BERTH_ROLES=api,relais"}, say: []string{"BERTH_ROLES=", `unknown role "relais": did you mean relay?`}},
		"no port":             {environ: []string{"BERTH_LISTEN=127.0.0.1"}, say: []string{"BERTH_LISTEN=127.0.0.1: must be host:port"}},
		"port too large":      {environ: []string{"BERTH_DEV_UI_PORT=70000"}, say: []string{"BERTH_DEV_UI_PORT=70000: must be a port"}},
		"wrong duration":      {environ: []string{"BERTH_ODL_TIMEOUT=10"}, say: []string{"must be a positive duration"}},
		"wrong deadline":      {environ: []string{"BERTH_PORT_DEADLINE=L2=5"}, say: []string{"BERTH_PORT_DEADLINE=L2=5: must be a positive duration"}},
		"no quota":            {environ: []string{"BERTH_QUOTA=port"}, say: []string{`"port" must be NAME=NUMBER`}},
		"two quotas":          {environ: []string{"BERTH_QUOTA=port=1,port=2"}, say: []string{`"port" is there twice`}},
		"two deadlines":       {environ: []string{"BERTH_PORT_DEADLINE=L2=5m,L2=6m"}, say: []string{`"L2" is there twice`}},
		"wrong policy":        {environ: []string{"BERTH_PORT_OVERDUE=delete"}, say: []string{"must be wait or error"}},
		"wrong URL":           {environ: []string{"BERTH_ODL_URL=odl:8181"}, say: []string{"BERTH_ODL_URL=odl:8181: must be an http or https URL"}},
		"wrong switch":        {environ: []string{"BERTH_DEMO=maybe"}, say: []string{"must be on or off"}},
		"wrong level":         {environ: []string{"BERTH_LOG_LEVEL=loud"}, say: []string{"must be debug, info"}},
		"wrong auth":          {environ: []string{"BERTH_AUTH=none"}, say: []string{"must be noauth or keystone"}},
		"noauth everywhere":   {environ: []string{"BERTH_LISTEN=:8778"}, say: []string{"BERTH_LISTEN=:8778", "loopback only"}},
		"noauth outside":      {environ: []string{"BERTH_LISTEN=192.0.2.1:8778"}, say: []string{"loopback only"}},
		"noauth by name":      {environ: []string{"BERTH_LISTEN=localhost.example:8778"}, say: []string{"loopback only"}},
		"keystone unreached":  {environ: []string{"BERTH_AUTH=keystone"}, say: []string{"needs OS_AUTH_URL"}},
		"origin with path":    {environ: []string{"BERTH_CORS_ALLOWED_ORIGIN=http://a,https://b/"}, say: []string{"https://b/", "scheme://host"}},
		"origin without host": {environ: []string{"BERTH_CORS_ALLOWED_ORIGIN=null"}, say: []string{"BERTH_CORS_ALLOWED_ORIGIN"}},
		"two errors at once":  {environ: []string{"BERTH_DEMO=x", "BERTH_FOO=y"}, say: []string{"BERTH_DEMO", "BERTH_FOO"}},
		"duplicate file keys": {file: "demo: on\ndemo: off", say: []string{"already defined"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.file != "" {
				c.environ = append(c.environ, "BERTH_CONFIG="+file(t, c.file))
			}
			_, err := config.Load(c.environ)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, say := range c.say {
				if !strings.Contains(err.Error(), say) {
					t.Errorf("error %q does not say %q", err, say)
				}
			}
		})
	}
}

func TestListsAreSplitAtCommas(t *testing.T) {
	t.Parallel()
	path := file(t, "cors_allowed_origin: [https://a.example.com, '*']\ncors_max_age: 90s\n")
	got := load(t, "BERTH_CONFIG="+path, "BERTH_CORS_ALLOW_METHODS=GET, ,PUT").CORS
	want := load(t).CORS
	want.Origins, want.Methods, want.MaxAge = []string{"https://a.example.com", "*"}, []string{"GET", "PUT"}, 90*time.Second
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestDeadlinesAreOneForAllOrByEntity(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]config.Port{
		"":                   {Deadlines: map[string]time.Duration{"": 5 * time.Minute}},
		"off":                {Deadlines: map[string]time.Duration{}},
		"90s":                {Deadlines: map[string]time.Duration{"": 90 * time.Second}},
		"L2=1m, DHCP=2m,10m": {Deadlines: map[string]time.Duration{"": 10 * time.Minute, "L2": time.Minute, "DHCP": 2 * time.Minute}},
	} {
		if d := cmp.Diff(want, load(t, "BERTH_PORT_DEADLINE="+value).Port); d != "" {
			t.Errorf("%q: %s", value, d)
		}
	}
	if !load(t, "BERTH_PORT_OVERDUE=error").Port.Fatal {
		t.Error("an overdue port is not in ERROR")
	}
}

func TestKeystoneMayListenAnywhere(t *testing.T) {
	t.Parallel()
	c := load(t, "BERTH_AUTH=keystone", "BERTH_LISTEN=0.0.0.0:8778", "OS_AUTH_URL=http://192.0.2.1/v3/", "OS_USERNAME=berth")
	want := config.Service{AuthURL: "http://192.0.2.1/v3", Username: "berth", UserDomain: "Default", ProjectDomain: "Default"}
	if d := cmp.Diff(want, c.Service); d != "" {
		t.Error(d)
	}
}

func TestSecretsStayOutOfErrors(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"BERTH_ODL_PASSWORD", "BERTH_NOVA_TOKEN", "BERTH_DATABASE_URL"} {
		_, err := config.Load([]string{name + "=hunter2", "BERTH_DEMO=x"})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUsageShowsEveryDefault(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	config.Usage(&b)
	for _, want := range []string{"BERTH_LISTEN", "127.0.0.1:8778", "BERTH_DEV_TEMPORAL_PORT", "7233", "BERTH_CONFIG"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("usage lacks %s:\n%s", want, b.String())
		}
	}
}

func TestAddressesAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if none, err := config.ReadAddresses(data); none != nil || err != nil {
		t.Errorf("without a run: %v, %v", none, err)
	}
	want := map[string]string{"BERTH_LISTEN": "127.0.0.1:1", "BERTH_DATABASE_URL": "postgres://a:b'c@h/d?e=f"}

	if err := config.WriteAddresses(data, want); err != nil {
		t.Fatal(err)
	}
	got, err := config.ReadAddresses(data)

	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if err := config.RemoveAddresses(data); err != nil {
		t.Error(err)
	}
	if err := config.RemoveAddresses(data); err != nil {
		t.Error("removing twice:", err)
	}
}
