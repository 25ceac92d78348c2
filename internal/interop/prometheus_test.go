package interop

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"berth/internal/server/servertest"
)

// prometheus is a running Prometheus server with the alert rules of the repository.
type prometheus struct {
	s       *servertest.Deployment
	url     string
	dir     string
	targets []scrapeTarget
}

// scrapeTarget is a process that Prometheus scrapes, in the form of Prometheus' service discovery.
type scrapeTarget struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

var (
	prometheusListens = regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	alertName         = regexp.MustCompile(`(?m)^ *- alert: (\w+)$`)
	alertDuration     = regexp.MustCompile(`(?m)^( *for:) \S+$`)
	ruleWindow        = regexp.MustCompile(`\[\w+\]`)
)

const prometheusConfig = `
global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: berth
    tls_config: {insecure_skip_verify: true}
    file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]
`

// readAlertRules returns the alert rules of the repository and the names of the alerts.
func readAlertRules(t *testing.T) (rules string, names []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repository, "deploy/monitoring/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range alertName.FindAllStringSubmatch(string(raw), -1) {
		names = append(names, found[1])
	}
	slices.Sort(names)
	return string(raw), names
}

// quickRules returns the alert rules with short times: an alert fires after its condition has held for two
// seconds, and a rate covers ten seconds. The thresholds are those of the repository.
func quickRules(t *testing.T) string {
	t.Helper()
	rules, names := readAlertRules(t)
	if got := len(alertDuration.FindAllString(rules, -1)); got != len(names) {
		t.Fatalf("the rules have %d alerts, but %d of them have a duration", len(names), got)
	}
	windows := ruleWindow.FindAllString(rules, -1)
	slices.Sort(windows)
	want := []string{"[10m]", "[1h]", "[30m]", "[3d]", "[5m]", "[6h]"}
	if windows = slices.Compact(windows); !slices.Equal(windows, want) {
		t.Fatalf("windows of the rates in the rules: got %v, want %v", windows, want)
	}
	return ruleWindow.ReplaceAllString(alertDuration.ReplaceAllString(rules, "$1 2s"), "[10s]")
}

// startPrometheus starts a Prometheus server.
func startPrometheus(s *servertest.Deployment) *prometheus {
	s.Helper()
	p := &prometheus{s: s, dir: s.TempDir()}
	p.write("alerts.yaml", []byte(quickRules(s.T)))
	p.write("prometheus.yml", []byte(prometheusConfig))
	process := servertest.StartProgram(
		s.T,
		"prometheus",
		[]string{"--config.file=" + filepath.Join(p.dir, "prometheus.yml"),
			"--storage.tsdb.path=" + filepath.Join(p.dir, "data"), "--web.listen-address=127.0.0.1:0"},
	)
	s.Await("Prometheus listens", func() string {
		if m := prometheusListens.FindStringSubmatch(process.Output()); m != nil {
			p.url = "http://" + m[1]
			return ""
		}
		return "an address in the output " + process.Output()
	})
	return p
}

// write replaces a file in the folder of Prometheus.
func (p *prometheus) write(name string, content []byte) {
	p.s.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		p.s.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		p.s.Fatal(err)
	}
}

// scrape makes Prometheus also scrape the process with the given URL.
func (p *prometheus) scrape(url string) {
	p.s.Helper()
	scheme, address, _ := strings.Cut(url, "://")
	p.targets = append(p.targets,
		scrapeTarget{Targets: []string{address}, Labels: map[string]string{"__scheme__": scheme}})
	raw, err := json.Marshal(p.targets)
	if err != nil {
		p.s.Fatal(err)
	}
	p.write("targets.json", raw)
}

// urlOf returns the URL of the process with the label `instance`, or "" if Prometheus does not scrape such a
// process.
func (p *prometheus) urlOf(instance string) string {
	for _, t := range p.targets {
		if slices.Contains(t.Targets, instance) {
			return t.Labels["__scheme__"] + "://" + instance
		}
	}
	return ""
}

// alert is an alert that is pending or firing.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

// alerts returns the pending and firing alerts with the given name.
func (p *prometheus) alerts(name string) ([]alert, error) {
	r, err := http.Get(p.url + "/api/v1/alerts")
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Body.Close() }()
	var body struct{ Data struct{ Alerts []alert } }
	err = json.NewDecoder(r.Body).Decode(&body)
	return slices.DeleteFunc(body.Data.Alerts,
		func(a alert) bool { return a.Labels["alertname"] != name }), err
}

// awaitAlert waits until the alert fires and returns it.
func (p *prometheus) awaitAlert(name string) (found alert) {
	p.s.Helper()
	p.s.Await("the alert "+name+" fires", func() string {
		all, err := p.alerts(name)
		for _, a := range all {
			if a.State == "firing" {
				found = a
				return ""
			}
		}
		return fmt.Sprint(all, err)
	})
	return found
}

// awaitResolved waits until the alert neither fires nor is pending.
func (p *prometheus) awaitResolved(name string) {
	p.s.Helper()
	p.s.Await("the alert "+name+" has ended", func() string {
		if all, err := p.alerts(name); err != nil || len(all) > 0 {
			return fmt.Sprint(all, err)
		}
		return ""
	})
}
