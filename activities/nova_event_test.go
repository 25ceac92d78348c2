package activities_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

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

// novaFixture holds a stub of Nova, the activities that call this stub, and a port of a server.
type novaFixture struct {
	*notifytest.Nova
	t     *testing.T
	env   *testsuite.TestActivityEnvironment
	acts  *activities.Activities
	store *store.Store
	port  network.Port
}

func newNovaFixture(t *testing.T) novaFixture {
	t.Helper()
	stub := &notifytest.Nova{}
	client, err := notify.NewNova(notify.Config{URL: startServer(t, stub), Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	n := novaFixture{Nova: stub, t: t, store: storetest.New(t)}
	n.acts = newActivities(activities.Options{Store: n.store, Nova: notify.NewEventBatcher(client.Send)})
	n.env = (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	activities.Register(n.env, n.acts.Functions())

	p, owner, device, vnic, host := "p", "compute:nova", "6c2a1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b11", "direct-physical", "h"
	flat, physical := network.Flat, "physnet"
	nets, err := n.store.Network.CreateNetworks(t.Context(),
		[]network.NetworkChange{{Project: &p, Type: &flat, PhysicalNetwork: &physical}})
	if err != nil {
		t.Fatal(err)
	}
	cidr := netip.MustParsePrefix("10.0.0.0/24")
	if _, err := n.store.Network.CreateSubnets(t.Context(), []network.SubnetChange{{Network: &nets[0].ID, Project: &p, CIDR: &cidr}}); err != nil {
		t.Fatal(err)
	}
	// No agent has to connect a port of the VNIC type `direct-physical`. The new port is therefore ACTIVE
	// immediately, and CreatePorts records an event for Nova.
	ports, err := n.store.Network.CreatePorts(t.Context(), []network.PortChange{
		{
			Network:     &nets[0].ID,
			Project:     &p,
			Host:        &host,
			VNIC:        &vnic,
			DeviceOwner: &owner,
			DeviceID:    &device,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.port = ports[0]
	return n
}

// notifyNova runs the activity NotifyNova once and returns the names of the events that are still recorded
// afterwards.
func (n novaFixture) notifyNova() (left []string, err error) {
	n.t.Helper()
	_, err = n.env.ExecuteActivity(n.acts.NotifyNova, n.port.ID.String())
	events, readErr := n.store.Notifications.NovaEvents(context.WithoutCancel(n.t.Context()), n.port.ID, 0)
	if readErr != nil {
		n.t.Fatal(readErr)
	}
	left = []string{}
	for _, e := range events {
		left = append(left, e.Name)
	}
	return left, err
}

func TestNotifyNova_RetriesUndeliveredEvent(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]notifytest.Fault{
		"unknown server":      {Status: 404},
		"server without host": {Code: 422},
		"status 503":          {Status: 503},
		"dropped connection":  {DropConnection: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNovaFixture(t)
			fault.Times = 2
			n.InjectFaults(fault)
			for range 2 {
				left, err := n.notifyNova()
				var app *temporal.ApplicationError
				if d := cmp.Diff([]string{network.NovaVIFPlugged}, left); d != "" || err == nil ||
					errors.As(err, &app) && app.NonRetryable() {
					t.Fatalf(
						"NotifyNova during a failure of Nova: events that are left (-want +got): %s; error %v, want a retryable one",
						d,
						err,
					)
				}
			}
			if left, err := n.notifyNova(); len(left) != 0 || err != nil {
				t.Errorf(
					"NotifyNova: got the remaining events %v, error %v; want no events and no error",
					left,
					err,
				)
			}
			if got := n.Events(); len(got) == 0 || got[len(got)-1].Name != network.NovaVIFPlugged ||
				got[len(got)-1].Code != 200 {
				t.Errorf(
					"events that Nova received: got %+v; want the last one to be network-vif-plugged with code 200",
					got,
				)
			}
		})
	}
}

func TestNotifyNova_DropsEventsOfDeletedPortIfServerIsUnknown(t *testing.T) {
	t.Parallel()
	n := newNovaFixture(t)
	if err := n.store.Network.DeletePort(t.Context(), n.port.ID, nil); err != nil {
		t.Fatal(err)
	}
	n.InjectFaults(notifytest.Fault{Status: 404})
	if left, err := n.notifyNova(); len(left) != 0 || err != nil {
		t.Errorf(
			"events of a deleted port after NotifyNova: got %v, error %v; want no events, because the port's workflow ends only without events",
			left,
			err,
		)
	}
}
