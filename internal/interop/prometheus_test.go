package interop

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"berth/internal/server/servertest"
)

// prometheus is a running Prometheus server.
type prometheus struct {
	s   *servertest.Deployment
	url string
}

var (
	prometheusListens = regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	alertDuration     = regexp.MustCompile(`(?m)^( *for:) \S+$`)
)

// startPrometheus starts a Prometheus server that scrapes the worker every second. The server uses the alert
// rules of the repository, but the alerts fire after two seconds instead of minutes.
func startPrometheus(s *servertest.Deployment, w *servertest.Worker) prometheus {
	s.Helper()
	dir := s.TempDir()
	rules, err := os.ReadFile(filepath.Join(repository, "deploy/monitoring/alerts.yaml"))
	if err != nil {
		s.Fatal(err)
	}
	config := fmt.Sprintf(
		"global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: [alerts.yaml]\n"+
			"scrape_configs:\n  - job_name: berth\n    static_configs: [{targets: [%q]}]\n",
		strings.TrimPrefix(w.URL, "http://"),
	)
	for name, text := range map[string]string{"alerts.yaml": alertDuration.ReplaceAllString(string(rules), "$1 2s"), "prometheus.yml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	process := servertest.StartProgram(
		s.T,
		"prometheus",
		[]string{"--config.file=" + filepath.Join(dir, "prometheus.yml"),
			"--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0"},
	)
	p := prometheus{s: s}
	s.Await("Prometheus listens", func() string {
		if m := prometheusListens.FindStringSubmatch(process.Output()); m != nil {
			p.url = "http://" + m[1]
			return ""
		}
		return "an address in the output " + process.Output()
	})
	return p
}

// get reads a resource of Prometheus' API into v.
func (p prometheus) get(path string, v any) error {
	r, err := http.Get(p.url + path)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	return json.NewDecoder(r.Body).Decode(&struct{ Data any }{v})
}

// alert is an alert that is pending or firing.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

// awaitAlert waits until the alert fires and returns it.
func (p prometheus) awaitAlert(name string) (found alert) {
	p.s.Helper()
	p.s.Await("the alert "+name+" fires", func() string {
		var all struct{ Alerts []alert }
		err := p.get("/api/v1/alerts", &all)
		for _, a := range all.Alerts {
			if a.Labels["alertname"] == name && a.State == "firing" {
				found = a
				return ""
			}
		}
		return fmt.Sprint(all, err)
	})
	return found
}

// awaitResolved waits until the alert neither fires nor is pending.
func (p prometheus) awaitResolved(name string) {
	p.s.Helper()
	p.s.Await("the alert "+name+" has ended", func() string {
		var all struct{ Alerts []alert }
		if err := p.get("/api/v1/alerts", &all); err != nil {
			return err.Error()
		}
		for _, a := range all.Alerts {
			if a.Labels["alertname"] == name {
				return a.State
			}
		}
		return ""
	})
}

// value returns the result of a query that has one value.
func (p prometheus) value(query string) (string, error) {
	var found struct{ Result []struct{ Value [2]any } }
	if err := p.get("/api/v1/query?query="+url.QueryEscape(query), &found); err != nil ||
		len(found.Result) != 1 {
		return "", fmt.Errorf("query %s: got %d values, error %w; want one value",
			query, len(found.Result), err)
	}
	return fmt.Sprint(found.Result[0].Value[1]), nil
}

// runbookRemedy matches the command with which a runbook ends the cause of its alert.
var runbookRemedy = regexp.MustCompile("(?m)^Run `(starter [^`]+)`")

// runbook returns the commands in the section of a runbook that show the cause, and the command that ends the
// cause, if there is one. An alert links to the section as page#section.
func runbook(t *testing.T, link string) (commands []string, remedy string) {
	t.Helper()
	page, section, _ := strings.Cut(link, "#")
	for text := range strings.SplitSeq(readPage(t, page), "\n## ") {
		title, body, _ := strings.Cut(text, "\n")
		if strings.ToLower(title) != section {
			continue
		}
		if found := runbookRemedy.FindStringSubmatch(body); found != nil {
			remedy = strings.ReplaceAll(found[1], "TEXT", "done")
		}
		_, block, _ := strings.Cut(body, "```sh\n")
		block, _, _ = strings.Cut(block, "```")
		return strings.Split(strings.TrimSpace(block), "\n"), remedy
	}
	t.Fatalf("the runbook %s does not exist", link)
	return nil, ""
}

// starter runs a command against a worker, and returns what the command prints.
func starter(s *servertest.Deployment, w *servertest.Worker, command string) string {
	s.Helper()
	words := strings.Fields(command)
	c := exec.CommandContext(s.Context(), servertest.Program(s.T, words[0]), words[1:]...)
	c.Env = append(append(os.Environ(), s.Settings...), "BERTH_URL="+w.URL, "BERTH_TOKEN=admin")
	out, _ := c.CombinedOutput() // starter doctor ends with the exit code of the failed check
	return string(out)
}

// checkRunbook runs the commands of an alert's runbook, whose output must match each of the expressions. It
// returns the command that ends the cause.
func checkRunbook(s *servertest.Deployment, w *servertest.Worker, fired alert, want ...string) (remedy string) {
	s.Helper()
	commands, remedy := runbook(s.T, fired.Annotations["runbook_url"])
	output := ""
	for _, command := range commands {
		output += starter(s, w, command)
	}
	for _, expression := range want {
		if !regexp.MustCompile(expression).MatchString(output) {
			s.Errorf("commands of the runbook of %s: want output that matches %q, got\n%s",
				fired.Labels["alertname"], expression, output)
		}
	}
	return remedy
}

// TestAlert_FiresAndItsRunbookNamesTheCause lets a real Prometheus scrape a worker. First the controller of
// the worker breaks every connection, then an operator pauses the journal. When the alert fires, the test
// runs the commands of its runbook; when the cause is gone, the alert must end.
func TestAlert_FiresAndItsRunbookNamesTheCause(t *testing.T) {
	t.Parallel()
	s, _ := servertest.SharedDeployment(t)
	w := s.StartWorker("api,relay,temporal")
	w.AwaitReady()
	p := startPrometheus(s, w)
	away := func(*http.Request) { panic(http.ErrAbortHandler) }
	s.Intercept.Store(&away)
	var back sync.Once
	defer back.Do(func() { s.Intercept.Store(nil) })
	for i := range 8 {
		w.CreateNetwork(fmt.Sprintf("n-%d", i))
	}

	fired := p.awaitAlert("BerthControllerAway")

	if fired.Labels["severity"] != "page" || fired.Annotations["summary"] == "" {
		t.Errorf("alert: got %+v, want the severity page and a summary", fired)
	}
	checkRunbook(s, w, fired, `(?m)OpenDaylight\s+FAIL|FAIL\s+OpenDaylight`, "n-7")
	if up, err := p.value(`up{job="berth"}`); up != "1" {
		t.Errorf("scrape of the worker: got up=%s, error %v; want 1", up, err)
	}

	back.Do(func() { s.Intercept.Store(nil) })
	p.awaitResolved("BerthControllerAway")
	s.AwaitNone("the backlog is sent", servertest.UnfinishedEntries)

	starter(s, w, "starter journal pause --reason maintenance-of-rack-4")
	remedy := checkRunbook(s, w, p.awaitAlert("BerthJournalPaused"), "maintenance-of-rack-4")
	starter(s, w, remedy)
	p.awaitResolved("BerthJournalPaused")
}
