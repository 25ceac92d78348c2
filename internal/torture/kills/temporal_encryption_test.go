package kills

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/devstack/temporaltest"
	"berth/internal/odl/odltest"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
	"berth/internal/torture/harness"
)

// Two keys of 32 bytes in Base64.
const (
	oldKey = "b2xkLW9sZC1vbGQtb2xkLW9sZC1vbGQtb2xkLW9sZCE="
	newKey = "bmV3LW5ldy1uZXctbmV3LW5ldy1uZXctbmV3LW5ldyE="
)

const encryptionKeys = "BERTH_TEMPORAL_ENCRYPTION_KEYS="

// recognizable contains names and addresses of objects that occur nowhere else.
type recognizable struct {
	project, network, port, lease, failure, ip, mac string
}

func (r recognizable) texts() []string {
	return []string{r.project, r.network, r.port, r.lease, r.failure, r.ip, r.mac}
}

// missing returns those texts that are not in the dump.
func (r recognizable) missing(dump []byte) (texts []string) {
	for _, text := range r.texts() {
		if !bytes.Contains(dump, []byte(text)) {
			texts = append(texts, text)
		}
	}
	return texts
}

// newDeploymentIn returns a deployment in a new namespace of the server.
func newDeploymentIn(
	t *testing.T,
	server *devstack.TestTemporal,
	c client.Client,
	namespace string,
	settings ...string,
) *servertest.Deployment {
	t.Helper()
	if err := temporaltest.Register(t.Context(), c, namespace); err != nil {
		t.Fatal(err)
	}
	return servertest.NewDeployment(t, storetest.URL(t), append(
		[]string{"TEMPORAL_ADDRESS=" + server.Address, "TEMPORAL_NAMESPACE=" + namespace},
		settings...)...)
}

// use creates a network, a port and a lease, makes the controller fail once, and brings the port to ACTIVE.
// use returns the port.
func (r recognizable) use(s *servertest.Deployment, c *servertest.Worker, host string) (port string) {
	s.Helper()
	c.Token = "admin:" + r.project
	c.RegisterAgents()
	s.Controller.InjectFaults(odltest.Fault{
		Method: http.MethodPost,
		Type:   "port",
		Times:  2,
		Status: http.StatusServiceUnavailable,
		Body:   fmt.Sprintf("%s: %s %s", r.failure, r.ip, r.mac),
	})
	network := c.CreateNetwork(r.network)
	subnet := servertest.SubnetBody(network)
	subnet["cidr"] = r.ip[:strings.LastIndex(r.ip, ".")] + ".0/24"
	c.Create("subnet", subnet)
	body := servertest.PortBody(network)
	body["name"], body["mac_address"] = r.port, r.mac
	body["fixed_ips"] = []servertest.Object{{"ip_address": r.ip}}
	port = c.Create("port", body)
	c.Must("POST", "/agent/v1/reports", servertest.ReportsBody(port))
	s.AwaitActive(c, []string{port})
	s.AwaitNone("all journal entries are completed", servertest.UnfinishedEntries)
	lease := harness.CreateLeaseOf(c, host, 2*time.Second, time.Hour)
	s.Await("the lease is active", func() string {
		_, o, err := c.Do("GET", lease, nil)
		if shown, _ := o["lease"].(servertest.Object); shown["status"] == "ACTIVE" {
			return ""
		}
		return fmt.Sprint(o, err)
	})
	return port
}

// TestEncryption_TemporalHasNoClearText uses berth with keys and without, on one Temporal server, and looks
// for names, projects and addresses in Temporal's databases. The deployment without keys shows that the
// test would find them.
func TestEncryption_TemporalHasNoClearText(t *testing.T) {
	t.Parallel()
	server, c := harness.StartOwnTemporal(t)
	secret := recognizable{
		"zebraproject", "zebranetwork", "zebraport", "lease of cmp-71", "zebrafailure", "10.71.3.77", "fa:16:3e:71:77:01",
	}
	plain := recognizable{
		"yakproject", "yaknetwork", "yakport", "lease of cmp-72", "yakfailure", "10.72.3.78", "fa:16:3e:72:78:01",
	}
	withKeys := newDeploymentIn(t, server, c, "encrypted", encryptionKeys+oldKey)
	worker := withKeys.StartWorker("api,relay,temporal")
	port := secret.use(withKeys, worker, "cmp-71")
	without := newDeploymentIn(t, server, c, "clear")
	plain.use(without, without.StartWorker("api,relay,temporal"), "cmp-72")

	dump, err := server.Dump(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if missing := plain.missing(dump); len(missing) > 0 {
		t.Errorf("Temporal's databases without keys: want all recognizable texts, %q are missing", missing)
	}
	if missing := secret.missing(dump); len(missing) < len(secret.texts()) {
		t.Errorf(
			"Temporal's databases with keys: want none of %q, only %q are missing; excerpts:\n%s",
			secret.texts(),
			missing,
			excerpts(dump, "zebra"),
		)
	}
	checkTemporalCommand(t, server, worker, port, secret)
}

// excerpts returns the surroundings of a text.
func excerpts(dump []byte, text string) string {
	var all strings.Builder
	for _, at := range regexp.MustCompile(regexp.QuoteMeta(text)).FindAllIndex(dump, 10) {
		fmt.Fprintf(&all, "%q\n", dump[max(0, at[0]-200):min(len(dump), at[1]+50)])
	}
	return all.String()
}

// checkTemporalCommand runs the temporal command line with and without the codec server of the worker.
func checkTemporalCommand(
	t *testing.T,
	server *devstack.TestTemporal,
	worker *servertest.Worker,
	port string,
	secret recognizable,
) {
	t.Helper()
	cli, err := devstack.TemporalCLI(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"show --detailed", "describe"} {
		run := func(codec ...string) (string, error) {
			args := slices.Concat([]string{"workflow"}, strings.Fields(command), []string{
				"--workflow-id", contract.PortID(port), "--address", server.Address,
				"--namespace", "encrypted", "--disable-config-file", "--command-timeout", "5m",
			}, codec)
			cmd := exec.CommandContext(t.Context(), cli, args...)
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		endpoint := "--codec-endpoint=" + worker.URL + "/operator/v1/codec"
		if out, err := run(endpoint, "--codec-auth=Bearer admin"); err != nil || !strings.Contains(out, secret.port) {
			t.Errorf("temporal workflow %s with the codec server: got error %v, want %s in:\n%s", command, err, secret.port, out)
		}
		if out, err := run(); err != nil || strings.Contains(out, "zebra") {
			t.Errorf("temporal workflow %s without the codec server: got error %v, want no name in:\n%s", command, err, out)
		}
		if out, err := run(endpoint, "--codec-auth=Bearer user:demo"); err == nil || strings.Contains(out, "zebra") {
			t.Errorf("temporal workflow %s as a user: got error %v, want an error and no name in:\n%s", command, err, out)
		}
	}
}

// TestEncryption_RotationKeepsWorkflowsRunning creates a port with the old key, and brings it to ACTIVE after
// the rotation, by an encrypted update and by a signal in clear text.
func TestEncryption_RotationKeepsWorkflowsRunning(t *testing.T) {
	t.Parallel()
	s, c := servertest.SharedDeployment(t)
	connection := s.Settings
	with := func(keys string) *servertest.Worker {
		s.Settings = append(append([]string{}, connection...), encryptionKeys+keys)
		return s.StartWorker("api,relay,temporal")
	}
	before := with(oldKey)
	before.AwaitReady()
	before.RegisterAgents()
	port := createWaitingPort(before)
	s.Await("the workflow of the port runs", func() string { return notOpen(s, c, contract.PortID(port)) })
	before.Kill()

	s.Settings = connection
	without := s.StartWorker("relay,temporal")
	s.Await("a process without keys names the key and the setting", func() string {
		if out := without.Output(); !strings.Contains(out, "set BERTH_TEMPORAL_ENCRYPTION_KEYS") {
			return out
		}
		return ""
	})
	if code, answer, err := without.Do("GET", "/readyz", nil); code != http.StatusServiceUnavailable {
		t.Errorf("readiness of a process without keys: got %d %v, error %v; want 503", code, answer, err)
	}
	without.Kill()

	after := with(newKey + "," + oldKey)
	after.AwaitReady()
	starter := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), servertest.Program(t, "starter"), args...)
		cmd.Env = append(append(os.Environ(), s.Settings...), "BERTH_URL="+after.URL)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	// Temporal pauses between the attempts of a workflow task that the process without keys has failed.
	s.Await("the workflow acknowledges the report", func() string {
		out, err := starter("signal", contract.PortID(port), "--entity", "L2", "--host", "cmp-1", "--ack")
		if err != nil {
			return fmt.Sprint(err, "\n", out)
		}
		return ""
	})
	if out, err := starter("why", contract.PortID(port)); err != nil || !strings.Contains(out, "DHCP") {
		t.Errorf("starter why with keys: got %s, error %v; want that the port waits for DHCP", out, err)
	}
	err := c.SignalWorkflow(
		t.Context(),
		contract.PortID(port),
		"",
		contract.SignalProvisioningComplete,
		contract.Report{Entity: "DHCP", Host: "net-1"},
	)
	if err != nil {
		t.Fatal(err)
	}
	s.AwaitActive(after, []string{port})
	after.Kill()

	// The rotation has encrypted the Schedule of the sweep again, so the old key may go.
	only := with(newKey)
	only.AwaitReady()
	checkNoneFailed(t, c, contract.PortID(port))
}

// checkNoneFailed checks that the workflow runs, and that it is the first run.
func checkNoneFailed(t *testing.T, c client.Client, id string) {
	t.Helper()
	d, err := c.DescribeWorkflowExecution(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	info := d.GetWorkflowExecutionInfo()
	if info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING ||
		info.GetExecution().GetRunId() != info.GetFirstRunId() {
		t.Errorf("workflow %s after the rotation: got %v, want the first run to be running", id, info)
	}
}
