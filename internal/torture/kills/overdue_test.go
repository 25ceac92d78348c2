package kills

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/contract"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
	"berth/internal/torture/harness"
)

// hourPasses lets one hour pass for the objects that wait: a port, the L2 agent, a lease, a journal entry, a
// run and the notes.
const hourPasses = `
	update lease set start_at = start_at - interval '1 hour';
	update event set at = at - interval '1 hour' where event_type = 'start_lease';
	update block set deadline = deadline - interval '1 hour';
	update agent set heartbeat_at = heartbeat_at - interval '1 hour' where host = 'cmp-1';
	update journal_entry set created_at = created_at - interval '1 hour' where finished_at is null;
	update mirror_run set updated_at = updated_at - interval '1 hour' where finished_at is null;
	update note set first_due_at = coalesce(first_due_at, due_at) - interval '1 hour';`

// overdueStory is a deployment in which an object of each kind becomes overdue.
type overdueStory struct {
	*servertest.Deployment
	worker *servertest.Worker
}

// reported returns the kinds of overdue objects that GET /operator/v1/overdue lists.
func (s overdueStory) reported() (kinds []string) {
	s.Helper()
	for _, k := range s.worker.Must("GET", "/operator/v1/overdue", nil)["overdue"].([]any) {
		kinds = append(kinds, k.(servertest.Object)["kind"].(string))
	}
	slices.Sort(kinds)
	return kinds
}

// awaitMetrics waits until the metrics of overdue objects count objects of exactly the given kinds.
func (s overdueStory) awaitMetrics(kinds ...string) {
	s.Helper()
	sample := regexp.MustCompile(`^(berth_overdue_\w+)\{kind="(\w+)"\} (\S+)$`)
	s.Await(fmt.Sprintf("the metrics count the kinds %v", kinds), func() string {
		r, err := http.Get(s.worker.URL + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer func() { _ = r.Body.Close() }()
		found := map[string][]string{}
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			if m := sample.FindStringSubmatch(lines.Text()); m != nil {
				if v, err := strconv.ParseFloat(m[3], 64); err == nil && v > 0 {
					found[m[1]] = append(found[m[1]], m[2])
				}
			}
		}
		for _, metric := range []string{"berth_overdue_objects", "berth_overdue_seconds"} {
			if slices.Sort(found[metric]); !slices.Equal(found[metric], kinds) {
				return fmt.Sprintf("%s of %v", metric, found[metric])
			}
		}
		return ""
	})
}

// doctor returns the line of `starter doctor` about overdue objects.
func (s overdueStory) doctor() string {
	s.Helper()
	c := exec.CommandContext(s.Context(), servertest.Program(s.T, "starter"), "doctor")
	c.Env = append(append(os.Environ(), s.Settings...), "BERTH_URL="+s.worker.URL, "BERTH_TOKEN=admin")
	out, _ := c.Output() // doctor ends with the exit code of the first failed check
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "overdue  ") {
			return line
		}
	}
	return string(out)
}

// warnings returns how often the log names each overdue object.
func (s overdueStory) warnings() map[string]int {
	count := map[string]int{}
	for _, m := range regexp.MustCompile(`level=WARN msg="object is overdue" kind=(\w+) object=("[^"]*"|\S+)`).FindAllStringSubmatch(s.worker.Output(), -1) {
		count[m[1]+" "+strings.Trim(m[2], `"`)]++
	}
	return count
}

// awaitWarnings waits until the log names an object of each of the kinds.
func (s overdueStory) awaitWarnings(objects ...string) {
	s.Helper()
	s.Await(fmt.Sprintf("the log names %v", objects), func() string {
		logged := s.warnings()
		for _, o := range objects {
			if logged[o] == 0 {
				return o
			}
		}
		return ""
	})
}

// In this story no process runs workflows, and then Temporal is away, so that an object of each kind makes no
// progress. Every kind must be reported in every way. When Temporal and the workflows run again, every object
// must make progress.
func TestOverdue_EachKindIsReportedUntilItMakesProgress(t *testing.T) {
	t.Parallel()
	temporal, temporalClient := harness.StartOwnTemporal(t)
	servertest.PauseSweep(t, temporalClient)
	s := overdueStory{
		Deployment: servertest.NewDeployment(t, storetest.URL(t), "TEMPORAL_ADDRESS="+temporal.Address),
	}
	s.worker = s.StartWorker("api,relay")
	s.worker.AwaitReady()
	s.worker.RegisterAgents()
	temporal.Kill()
	network := s.worker.CreateNetwork("blue")
	s.worker.CreateSubnet(network)
	port := s.worker.Create("port", servertest.PortBody(network))
	lease := harness.CreateLeaseOf(s.worker, "node-1", 30*time.Minute, 24*time.Hour)
	s.worker.Must("POST", "/journal/v1/runs", servertest.Object{"kind": "audit"})
	// the relay tries one note after another, slower and slower, so it reaches the last note after minutes
	s.AwaitNone("a relay has tried to deliver a note",
		`select workflow_id from note where not exists (select from note where first_due_at is not null)`)
	storetest.ExecScript(t, s.Database, hourPasses)
	worst := map[string]string{
		"port":  "port/" + port,
		"agent": "Open vSwitch agent on cmp-1",
		"lease": leaseWorkflow(lease),
		"entry": contract.JournalID("1"),
		"run":   contract.RunID(contract.KeyAudit),
		"note":  contract.PortID(port),
	}
	kinds := []string{"agent", "entry", "lease", "note", "port", "run"}

	s.Await("an object of each kind is overdue", func() string {
		if got := s.reported(); !slices.Equal(got, kinds) {
			return fmt.Sprintf("only the kinds %v are", got)
		}
		return ""
	})
	s.awaitMetrics(kinds...)
	line := s.doctor()
	for kind, object := range worst {
		if kind == "note" { // doctor names two of the notes
			object = "of the kind note: "
		}
		if !strings.HasPrefix(line, "FAIL") || !strings.Contains(line, object) {
			t.Errorf("starter doctor: got the line %s; want FAIL and %q, the worst of the kind %s",
				line, object, kind)
		}
	}
	for kind, object := range worst {
		if kind != "note" {
			s.awaitWarnings(kind + " " + object)
		}
	}
	storetest.Exec(t, s.Database,
		`update agent set heartbeat_at = heartbeat_at - interval '1 hour' where host = 'net-1'`)
	s.awaitWarnings("agent DHCP agent on net-1") // from a later search
	for object, n := range s.warnings() {
		if n != 1 {
			t.Errorf("the log names %s %d times as overdue, want once", object, n)
		}
	}

	if err := temporal.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.StartWorker("temporal")
	s.worker.RegisterAgents()
	s.worker.Must("POST", "/agent/v1/reports", servertest.ReportsBody(port))
	s.Await("nothing is overdue", func() string { return strings.Join(s.reported(), " ") })
	s.awaitMetrics()
	if line := s.doctor(); !strings.HasPrefix(line, "ok") {
		t.Errorf("starter doctor after every object made progress: got the line %s; want ok", line)
	}
}
