package activities_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"berth/activities"
	"berth/internal/network"
	"berth/internal/notify"
	"berth/internal/notify/notifytest"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// nova is a stand-in for Nova, the activities that speak to it, and a port of a server.
type nova struct {
	*notifytest.Nova
	t     *testing.T
	env   *testsuite.TestActivityEnvironment
	acts  *activities.Activities
	store *store.Store
	port  network.Port
}

func newNova(t *testing.T) nova {
	t.Helper()
	stub := &notifytest.Nova{}
	client, err := notify.NewNova(notify.Config{URL: served(t, stub)})
	if err != nil {
		t.Fatal(err)
	}
	n := nova{Nova: stub, t: t, store: storetest.New(t)}
	n.acts = activities.New(activities.Options{Store: n.store, Nova: notify.NewEventBatcher(client.Send)})
	n.env = (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	activities.Register(n.env, n.acts.Functions())

	p, owner, device, vnic, host := "p", "compute:nova", "6c2a1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b11", "direct-physical", "h"
	nets, err := n.store.Network.CreateNetworks(t.Context(), []network.NetworkChange{{Project: &p}})
	if err != nil {
		t.Fatal(err)
	}
	cidr := netip.MustParsePrefix("10.0.0.0/24")
	if _, err := n.store.Network.CreateSubnets(t.Context(), []network.SubnetChange{{Network: &nets[0].ID, Project: &p, CIDR: &cidr}}); err != nil {
		t.Fatal(err)
	}
	// Nobody has to wire it: it is ACTIVE at once, and Nova is to be told.
	ports, err := n.store.Network.CreatePorts(t.Context(), []network.PortChange{{Network: &nets[0].ID, Project: &p, Host: &host, VNIC: &vnic, DeviceOwner: &owner, DeviceID: &device}})
	if err != nil {
		t.Fatal(err)
	}
	n.port = ports[0]
	return n
}

// tell runs the activity once and tells what is still to be told.
func (n nova) tell() (left []string, err error) {
	n.t.Helper()
	_, err = n.env.ExecuteActivity(n.acts.NotifyNova, n.port.ID.String())
	events, readErr := n.store.Network.NovaEvents(context.WithoutCancel(n.t.Context()), n.port.ID)
	if readErr != nil {
		n.t.Fatal(readErr)
	}
	left = []string{}
	for _, e := range events {
		left = append(left, e.Name)
	}
	return left, err
}

func TestEventThatNovaDoesNotTakeYetIsNotLost(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]notifytest.Fault{
		"the server is unknown": {Status: 404},
		"it has no host yet":    {Code: 422},
		"Nova is ill":           {Status: 503},
		"Nova is away":          {DropConnection: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNova(t)
			fault.Times = 2
			n.InjectFaults(fault)
			for range 2 {
				left, err := n.tell()
				var app *temporal.ApplicationError
				if d := cmp.Diff([]string{network.NovaVIFPlugged}, left); d != "" || err == nil || errors.As(err, &app) && app.NonRetryable() {
					t.Fatalf("%s; error %v", d, err)
				}
			}
			if left, err := n.tell(); len(left) != 0 || err != nil {
				t.Errorf("left %v, error %v", left, err)
			}
			if got := n.Events(); len(got) == 0 || got[len(got)-1].Name != network.NovaVIFPlugged || got[len(got)-1].Code != 200 {
				t.Errorf("Nova took %+v", got)
			}
		})
	}
}

func TestEventsThatNobodyWaitsForAreForgottenWhenTheServerIsUnknown(t *testing.T) {
	t.Parallel()
	n := newNova(t)
	if err := n.store.Network.DeletePort(t.Context(), n.port.ID, nil); err != nil {
		t.Fatal(err)
	}
	n.InjectFaults(notifytest.Fault{Status: 404})
	if left, err := n.tell(); len(left) != 0 || err != nil {
		t.Errorf("left %v, error %v: the workflow of a deleted port would stay", left, err)
	}
}
