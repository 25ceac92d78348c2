package kills

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/odl/odltest"
	"berth/internal/server/servertest"
)

// Build IDs of the two versions.
const (
	oldBuild = "0.1.0"
	newBuild = "0.2.0"
)

// versionedDeployment is a deployment whose processes have Worker Versioning.
type versionedDeployment struct {
	*servertest.Deployment
	temporal client.Client
	cli      string            // path of the temporal command line
	recipes  map[string]string // key: heading of docs/temporal.md below "Worker Versioning"; value: all its commands
}

func newVersionedDeployment(t *testing.T) versionedDeployment {
	t.Helper()
	cli, err := devstack.TemporalCLI(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/temporal.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Worker Versioning\n")
	section, _, _ = strings.Cut(section, "\n## ")
	recipes := map[string]string{}
	for _, part := range strings.Split(section, "\n### ")[1:] {
		heading, _, _ := strings.Cut(part, "\n")
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(part, -1) {
			recipes[heading] += block[1]
		}
	}
	s, temporal := servertest.SharedDeployment(t)
	return versionedDeployment{s, temporal, cli, recipes}
}

// start starts a process whose workers have the given build ID; an empty one means unversioned workers.
func (v versionedDeployment) start(build string) *servertest.Worker {
	v.Helper()
	common := v.Settings
	defer func() { v.Settings = common }()
	if build != "" {
		v.Settings = append(slices.Clip(common), "BERTH_WORKER_DEPLOYMENT=berth", "BERTH_WORKER_BUILD_ID="+build)
	}
	c := v.StartWorker("api,relay,temporal")
	c.AwaitReady()
	return c
}

// follow runs the commands of a recipe, and repeats them until they succeed: Temporal refuses a version until
// its workers poll.
func (v versionedDeployment) follow(heading string) (output string) {
	v.Helper()
	if v.recipes[heading] == "" {
		v.Fatalf("docs/temporal.md has no recipe %q", heading)
	}
	v.Await("the recipe "+heading+" succeeds", func() string {
		cmd := exec.CommandContext(v.Context(), "sh", "-e", "-c", v.recipes[heading])
		cmd.Env = append(os.Environ(), append(slices.Clone(v.Settings), "OLD="+oldBuild, "NEW="+newBuild,
			"PATH="+filepath.Dir(v.cli)+":"+os.Getenv("PATH"))...)
		out, err := cmd.CombinedOutput()
		if output = string(out); err != nil {
			return err.Error() + ": " + output
		}
		return ""
	})
	return output
}

// awaitBuild waits until workers with the given build ID have run the last task of an open workflow. The
// workflow gets a signal, because a workflow changes to another version with its next task.
func (v versionedDeployment) awaitBuild(id, build string) {
	v.Helper()
	v.Await("workflow "+id+" runs on the version "+build, func() string {
		if err := v.temporal.SignalWorkflow(v.Context(), id, "", contract.SignalChanged, nil); err != nil {
			return err.Error()
		}
		if got, _ := v.build(id); got != build {
			return "its version is " + got
		}
		return ""
	})
}

// build returns the build ID of the workers that have run the last task of a workflow, and the behavior of
// the workflow.
func (v versionedDeployment) build(id string) (string, enums.VersioningBehavior) {
	d, err := v.temporal.DescribeWorkflowExecution(v.Context(), id, "")
	if err != nil {
		return err.Error(), 0
	}
	info := d.GetWorkflowExecutionInfo().GetVersioningInfo()
	return info.GetDeploymentVersion().GetBuildId(), info.GetBehavior()
}

// pendingEntry returns the workflow ID of the only unfinished journal entry when its workflow has completed a
// task.
func (v versionedDeployment) pendingEntry() (id string) {
	v.Helper()
	v.Await("there is one unfinished entry", func() string {
		found := v.Rows(`select seq from journal_entry where state <> 'completed'`)
		if len(found) != 1 {
			return strings.Join(found, ", ")
		}
		id = contract.JournalID(found[0])
		return notOpen(v.Deployment, v.temporal, id)
	})
	firstTask(v.Deployment, v.temporal, id)
	return id
}

// TestWorkerVersioning_RecipesMoveTheWork follows the recipes of docs/temporal.md: a port's workflow goes to
// the new version, back, and to the new version again, while the workflow of a journal entry stays with the
// version that started it, until the recipe for a version without processes releases it.
func TestWorkerVersioning_RecipesMoveTheWork(t *testing.T) {
	t.Parallel()
	v := newVersionedDeployment(t)
	before := v.start(oldBuild)
	v.follow("The first version")
	before.RegisterAgents()
	port := contract.PortID(createWaitingPort(before))
	v.AwaitMirrored()
	v.Await("the port has a workflow", func() string { return notOpen(v.Deployment, v.temporal, port) })
	v.awaitBuild(port, oldBuild)
	v.Controller.InjectFaults(odltest.Fault{Status: 503, Times: 1 << 30})
	before.CreateNetwork("pending")
	entry := v.pendingEntry()

	after := v.start(newBuild)
	if out := v.follow("Try a new version"); !strings.Contains(out, newBuild) {
		t.Errorf("output of the recipe for a ramp: got\n%s\nwant the build ID %s", out, newBuild)
	}
	v.follow("Stop the trial")
	v.follow("Finish the upgrade")
	v.awaitBuild(port, newBuild)
	v.follow("Roll back")
	v.awaitBuild(port, oldBuild)
	v.follow("Finish the upgrade")
	v.awaitBuild(port, newBuild)
	v.awaitBuild(contract.PortID(createWaitingPort(after)), newBuild)
	_, behavior := v.build(port)
	v.Same("behavior of the port's workflow", enums.VERSIONING_BEHAVIOR_AUTO_UPGRADE, behavior)
	if build, behavior := v.build(entry); build != oldBuild || behavior != enums.VERSIONING_BEHAVIOR_PINNED {
		t.Errorf("journal entry of the old version: got version %s, behavior %s; want pinned to %s", build, behavior, oldBuild)
	}

	before.Kill()
	v.follow("Release pinned workflows")
	v.Controller.ClearFaults()
	v.AwaitMirrored()
	v.Await("the workflow of the entry has ended", func() string {
		if notOpen(v.Deployment, v.temporal, entry) == "" {
			return "it is open"
		}
		return ""
	})

	after.Kill()
	v.start("")
	v.follow("Switch it off")
	v.awaitBuild(port, "")
}
