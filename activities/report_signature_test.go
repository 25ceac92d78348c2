package activities_test

import (
	"crypto/ed25519"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/agentstore"
	"berth/internal/store/storetest"
)

// signatureFixture holds activities that require signatures, and a port on the host cmp-1 that waits for the
// L2 agent and for the entity "any" on any host.
type signatureFixture struct {
	t       *testing.T
	env     *testsuite.TestActivityEnvironment
	agents  *agentstore.Store
	port    string
	refused []contract.Refusal
}

func newSignatureFixture(t *testing.T) *signatureFixture {
	t.Helper()
	s := storetest.New(t)
	f := &signatureFixture{t: t, agents: s.Agents}
	acts := newActivities(activities.Options{
		Store:             s,
		RequireSignatures: true,
		OnRefusal:         func(r contract.Refusal) { f.refused = append(f.refused, r) },
	})
	f.env = (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	activities.Register(f.env, acts.Functions())
	project, host, owner := "p", "cmp-1", "compute:nova"
	if _, err := s.Network.ReportState(t.Context(), network.AgentState{Type: "Open vSwitch agent", Host: host, Configurations: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	nets, err := s.Network.CreateNetworks(t.Context(), []network.NetworkChange{{Project: &project}})
	if err != nil {
		t.Fatal(err)
	}
	ports, err := s.Network.CreatePorts(t.Context(), []network.PortChange{{
		Network:     &nets[0].ID,
		Project:     &project,
		Host:        &host,
		DeviceOwner: &owner,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Network.ReportPort(t.Context(), ports[0].ID, []network.Report{{Entity: "any", Event: network.ReportBlock}}); err != nil {
		t.Fatal(err)
	}
	f.port = ports[0].ID.String()
	return f
}

// key makes and registers a key of the host, and returns the private key and the ID of the registration.
func (f *signatureFixture) key(host string) (ed25519.PrivateKey, agentstore.Credential) {
	f.t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	c, err := f.agents.AddKey(f.t.Context(), host, public)
	if err != nil {
		f.t.Fatal(err)
	}
	return private, c
}

func (f *signatureFixture) apply(reports ...contract.Report) contract.PortStatus {
	f.t.Helper()
	value, err := f.env.ExecuteActivity(activities.ApplyPortReports, f.port, reports)
	var status contract.PortStatus
	if err == nil {
		err = value.Get(&status)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return status
}

// waiting returns the entities that block the port, separated by spaces.
func waiting(s contract.PortStatus) string {
	names := make([]string, len(s.Waiting))
	for i, w := range s.Waiting {
		names[i] = w.For
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestApplyPortReports_UnsignedAndWrongReportsChangeNothing(t *testing.T) {
	t.Parallel()
	f := newSignatureFixture(t)
	own, _ := f.key("cmp-1")
	other, _ := f.key("cmp-2")
	soon, workflow := time.Now().Add(time.Hour), contract.PortID(f.port)
	l2 := contract.Report{Entity: "L2", Host: "cmp-1"}

	s := f.apply(
		l2,
		l2.Sign(other, workflow, soon),
		l2.Sign(own, "port/another", soon),
		l2.Sign(own, workflow, time.Now().Add(-time.Minute)),
		contract.Report{},
		contract.Report{Entity: "x", Host: "cmp-1", Event: "block"}.Sign(own, workflow, soon),
	)

	want := []contract.Refusal{
		contract.RefusedUnsigned,
		contract.RefusedSignature,
		contract.RefusedSignature,
		contract.RefusedExpired,
		contract.RefusedMalformed,
		contract.RefusedEvent,
	}
	if d := cmp.Diff(want, s.Refused); d != "" || !slices.Equal(f.refused, want) {
		t.Errorf("refused reports, counted %v (-want +got):\n%s", f.refused, d)
	}
	if s.Status != network.Down || waiting(s) != "L2 any" || s.IgnoredReports != int64(len(want)) {
		t.Errorf(
			"port after %d refused reports: got %+v, want it DOWN, waiting for L2 and any, with all reports ignored",
			len(want),
			s,
		)
	}
}

func TestApplyPortReports_SignedReportCountsForItsHost(t *testing.T) {
	t.Parallel()
	f := newSignatureFixture(t)
	own, registered := f.key("cmp-1")
	other, _ := f.key("cmp-2")
	soon, workflow := time.Now().Add(time.Hour), contract.PortID(f.port)
	sign := func(entity, host string, key ed25519.PrivateKey) contract.Report {
		return contract.Report{Entity: entity, Host: host}.Sign(key, workflow, soon)
	}
	for _, c := range []struct {
		report contract.Report
		want   string
	}{
		{sign("L2", "cmp-2", other), "L2 any"}, {sign("any", "cmp-2", other), "L2 any"}, {sign("L2", "cmp-1", own), "any"},
	} {
		if s := f.apply(c.report); waiting(s) != c.want || s.Refused != nil {
			t.Errorf("apply the report %+v: got %+v, want that the port waits for %q and no refusal",
				c.report, s, c.want)
		}
	}
	if _, err := f.agents.Revoke(t.Context(), agentstore.Key, registered.ID); err != nil {
		t.Fatal(err)
	}
	s := f.apply(sign("L2", "cmp-1", own))
	if !slices.Equal(s.Refused, []contract.Refusal{contract.RefusedSignature}) {
		t.Errorf("apply a report that a revoked key signed: got the refusals %v, want %q",
			s.Refused, contract.RefusedSignature)
	}
}

// If the activity did not refuse a host with a NUL character, one such signal would make the activity fail,
// and Temporal would retry it forever.
func TestApplyPortReports_RefusesHostsThatTheDatabaseCannotStore(t *testing.T) {
	t.Parallel()
	f := newSignatureFixture(t)
	own, _ := f.key("cmp-1")
	good := contract.Report{
		Entity: "L2",
		Host:   "cmp-1",
	}.Sign(own, contract.PortID(f.port), time.Now().Add(time.Hour))

	s := f.apply(contract.Report{Entity: "L2", Host: "cmp-1\x00", Signature: "x"}, good)

	if !slices.Equal(s.Refused, []contract.Refusal{contract.RefusedMalformed, ""}) || waiting(s) != "any" {
		t.Errorf(
			"apply a report with the host cmp-1 and NUL, and a signed report: got %+v, want the first refused as malformed, and the second applied",
			s,
		)
	}
}
