package delivery_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/delivery"
	"berth/internal/network"
	"berth/internal/notify"
	"berth/internal/store"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

// services record what Nova and the agents receive.
type services struct {
	mu            sync.Mutex
	events        []string
	notifications []string
	fail          bool
	attempts      int
	during        func() // called during the first attempt
}

func (s *services) Send(_ context.Context, events []notify.Event) ([]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempts++; s.attempts == 1 && s.during != nil {
		s.during()
	}
	if s.fail {
		return nil, errors.New("Nova cannot be reached")
	}
	codes := make([]int, len(events))
	for i, e := range events {
		s.events, codes[i] = append(s.events, e.Name), 200
	}
	return codes, nil
}

func (s *services) Publish(
	_ context.Context,
	all []network.AgentNotification,
) (published []int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range all {
		s.notifications, published = append(s.notifications, a.Resource+" "+a.Event), append(published, a.ID)
	}
	return published, nil
}

func (s *services) received() (events, notifications []string, attempts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events), slices.Clone(s.notifications), s.attempts
}

type fixture struct {
	*testing.T
	*store.Store
	*services
	url    string
	sender delivery.Sender
	port   network.Port
}

// newFixture returns a fixture with a port for which an event for Nova and several notifications to agents
// are recorded.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	url := storetest.URL(t)
	f := &fixture{
		T:        t,
		Store:    storetest.Open(t, url),
		services: &services{},
		url:      url,
	}
	f.Network = portstore.New(f.DB, portstore.Config{Network: networkstore.Config{NotifyAgents: true}})
	f.sender = delivery.Sender{Recorded: f.Notifications, Nova: f.services, Agents: f.services}
	p, owner, device, vnic, host := "p", "compute:nova", "6c2a1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b11", "direct-physical", "h"
	flat, physical := network.Flat, "physnet"
	networks, err := f.Network.CreateNetworks(t.Context(),
		[]network.NetworkChange{{Project: &p, Type: &flat, PhysicalNetwork: &physical}})
	if err != nil {
		t.Fatal(err)
	}
	cidr := netip.MustParsePrefix("10.0.0.0/24")
	if _, err := f.Network.CreateSubnets(t.Context(), []network.SubnetChange{{Network: &networks[0].ID, Project: &p, CIDR: &cidr}}); err != nil {
		t.Fatal(err)
	}
	// No agent has to connect a port of the VNIC type `direct-physical`, so the port is ACTIVE at once.
	ports, err := f.Network.CreatePorts(t.Context(), []network.PortChange{
		{
			Network:     &networks[0].ID,
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
	f.port = ports[0]
	return f
}

// run runs a Direct until the test ends.
func (f *fixture) run() {
	f.Helper()
	ctx, stop := context.WithCancel(f.Context())
	ended := make(chan struct{})
	direct := delivery.NewDirect(f.sender, prometheus.NewRegistry())
	go func() {
		defer close(ended)
		direct.Run(ctx)
	}()
	f.Cleanup(func() {
		stop()
		<-ended
	})
}

// eventually waits until the function `holds` returns true.
func (f *fixture) eventually(what string, holds func() bool) {
	f.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.Fatalf("%s: not within five minutes", what)
		}
	}
}

var (
	wantEvents        = []string{network.NovaVIFPlugged}
	wantNotifications = []string{"network created", "subnet created", "port created"}
)

func TestDirect_DeliversWhatTemporalHasNotAccepted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.run()

	f.eventually("everything is delivered", func() bool { // no relay delivers the notes to Temporal
		events, notifications, _ := f.received()
		return len(events) >= len(wantEvents) && len(notifications) >= len(wantNotifications)
	})

	f.eventually("nothing is recorded as undelivered", func() bool {
		left, err := f.Notifications.NovaEvents(t.Context(), f.port.ID, 0)
		unsent, err2 := f.Notifications.Unsent(t.Context(), f.port.Network, 10)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		return len(left) == 0 && len(unsent) == 0
	})
	events, notifications, _ := f.received()
	if d := cmp.Diff(wantEvents, events); d != "" {
		t.Errorf("Nova events (-want +got): %s", d)
	}
	for _, want := range wantNotifications {
		if !slices.Contains(notifications, want) {
			t.Errorf("notifications: got %v, want also %s", notifications, want)
		}
	}
}

func TestDirect_LeavesToTheWorkflowWhatTemporalHasAccepted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	storetest.Exec(t, f.url, `delete from note`) // Temporal has accepted all notes
	storetest.Exec(t, f.url, `update nova_event set created_at = created_at - interval '1 minute'`)
	storetest.Exec(t, f.url, `update agent_notification set at = at - interval '1 minute'`)
	ports, err := f.Notifications.LatePorts(t.Context(), time.Second, 10)
	networks, err2 := f.Notifications.LateNetworks(t.Context(), time.Second, 10)
	if err != nil || err2 != nil || len(ports) > 0 || len(networks) > 0 {
		t.Errorf("late deliveries: got the ports %v, error %v, the networks %v, error %v; want none",
			ports, err, networks, err2)
	}
}

func TestClaim_OnlyOneProcessSendsNovaEvents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	f.during = func() { // while Direct sends the events, they are claimed, so no other process can send them
		if err := f.sender.NovaEvents(ctx, f.port.ID); !errors.Is(err, delivery.ErrClaimed) {
			t.Errorf(
				"deliver Nova events while another process delivers them: got error %v, want ErrClaimed",
				err,
			)
		}
		if again, err := f.Notifications.ClaimNovaEvents(ctx, f.port.ID, 0, time.Minute); err != nil ||
			len(again) != 1 ||
			!again[0].Claimed {
			t.Errorf("claim claimed events: got %+v, error %v; want one claimed event", again, err)
		}
	}
	f.fail = true
	f.run()
	f.eventually("an attempt has failed", func() bool { _, _, n := f.received(); return n > 0 })

	storetest.Exec(t, f.url, `update nova_event set claimed_until = clock_timestamp()`)
	f.mu.Lock()
	f.fail = false
	f.mu.Unlock()
	f.eventually("the event is delivered after the claim has expired", func() bool {
		events, _, _ := f.received()
		return slices.Equal(events, wantEvents)
	})
}

func TestClaim_ClaimedNotificationsAreNotSent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	first, err := f.Notifications.Claim(ctx, f.port.Network, time.Minute, 2)
	if err != nil || len(first) != 2 || first[0].Claimed || first[0].ID > first[1].ID {
		t.Fatalf("claim two notifications: got %+v, error %v; want the two oldest, unclaimed until now",
			first, err)
	}

	if err := f.sender.Notifications(ctx, f.port.Network); !errors.Is(err, delivery.ErrClaimed) {
		t.Errorf("send notifications that another process sends: got error %v, want ErrClaimed", err)
	}
	if again, err := f.Notifications.Claim(ctx, f.port.Network, time.Minute, 10); err != nil ||
		!again[0].Claimed {
		t.Errorf("claim claimed notifications: got %+v, error %v; want the first one claimed", again, err)
	}
	if _, notifications, _ := f.received(); len(notifications) > 0 {
		t.Errorf("sent notifications: got %v, want none", notifications)
	}

	storetest.Exec(t, f.url, `update agent_notification set claimed_until = clock_timestamp()`)
	if err := f.sender.Notifications(ctx, f.port.Network); err != nil {
		t.Errorf("send notifications whose claim has expired: got error %v, want none", err)
	}
}

func TestClaim_UnknownObjectHasNothingToDeliver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	events, err := f.Notifications.ClaimNovaEvents(t.Context(), uuid.New(), 0, time.Minute)
	all, err2 := f.Notifications.Claim(t.Context(), uuid.New(), time.Minute, 10)
	if len(events) > 0 || len(all) > 0 || err != nil || err2 != nil {
		t.Errorf("claim deliveries of unknown objects: got %v, %v, errors %v, %v; want none",
			events, all, err, err2)
	}
}
