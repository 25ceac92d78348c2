package interop

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"go.temporal.io/sdk/client"

	"berth/internal/devstack"
	"berth/internal/identity/keystonetest"
	"berth/internal/server/servertest"
	"berth/internal/torture/harness"
)

// alertDeployment is a deployment whose processes a Prometheus scrapes.
type alertDeployment struct {
	*servertest.Deployment
	*prometheus
	api *servertest.Worker // runs the commands of the runbooks

	temporal client.Client
	nova     *devstack.Server
	rabbitMQ harness.Link
	keystone *keystonetest.Server
	secure   *secureProcess

	authority string // file of Keystone's certificate authority

	stopHeartbeats func() // of the agents
}

// alertScenario is a fault that fires alerts.
type alertScenario struct {
	name string
	// for each alert that the fault fires: expressions that match what the commands of its runbook print
	alerts map[string][]string
	// fault breaks something and returns the function that mends it. The parameter of `mend` has, by alert,
	// the command with which its runbook ends the cause.
	fault func(d *alertDeployment) (mend func(remedies map[string]string))
}

// alertStage are scenarios that do not disturb each other: their faults exist at the same time.
type alertStage []alertScenario

// alertGroups has the scenarios of all alerts. The stages of a group run one after another in one deployment.
var alertGroups = []struct {
	name   string
	start  func(t *testing.T) *alertDeployment
	stages []alertStage
}{
	{"services", startServices, []alertStage{
		{relayMissing, sweepPaused},
		{workersMissing, noteRefused},
		{controllerAway, novaAway, rabbitMQAway, agentsSilent, reportsUnsigned},
		{entryRefused},
		{objectLost},
		{journalPaused},
	}},
	{"requests", startRequests, []alertStage{
		{credentialExpires},
		{keystoneAway, certificateExpires},
		{tableLocked},
		{databaseAway, processDown},
	}},
}

// TestAlert_EachHasAScenario checks that alertGroups has exactly the alerts of the repository.
func TestAlert_EachHasAScenario(t *testing.T) {
	t.Parallel()
	_, want := readAlertRules(t)
	var got []string
	for _, g := range alertGroups {
		for _, scenario := range slices.Concat(g.stages...) {
			got = slices.AppendSeq(got, maps.Keys(scenario.alerts))
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("alerts that the scenarios fire: got %v, want each alert of the rules once: %v", got, want)
	}
}

// TestAlert_FiresAndItsRunbookNamesTheCause breaks something in each scenario, waits until a real Prometheus
// fires the alerts, runs the commands of their runbooks, and mends the fault; then the alerts must end.
func TestAlert_FiresAndItsRunbookNamesTheCause(t *testing.T) {
	t.Parallel()
	for _, g := range alertGroups {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			d := g.start(t)
			for _, stage := range g.stages {
				d.run(stage)
			}
		})
	}
}

// run runs the scenarios of a stage side by side.
func (d *alertDeployment) run(stage alertStage) {
	d.Helper()
	mends := make([]func(map[string]string), len(stage))
	for i, scenario := range stage {
		for name := range scenario.alerts {
			d.awaitResolved(name) // before the fault
		}
		mends[i] = scenario.fault(d)
	}
	for i, scenario := range stage {
		remedies := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(scenario.alerts)) {
			fired := d.awaitAlert(name)
			remedies[name] = checkRunbook(d.Deployment,
				cmp.Or(d.urlOf(fired.Labels["instance"]), d.api.URL), fired, scenario.alerts[name]...)
		}
		d.Logf("%s: the alerts fire", scenario.name)
		mends[i](remedies)
	}
	for _, scenario := range stage {
		for name := range scenario.alerts {
			d.awaitResolved(name)
		}
		d.Logf("%s: the alerts have ended", scenario.name)
	}
}
