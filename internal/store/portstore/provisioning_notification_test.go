package portstore_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

// notices returns the undelivered provisioning notifications of a port or trunk, oldest first.
func (fx fixture) notices(object uuid.UUID) []network.ProvisioningNotification {
	fx.t.Helper()
	all, err := fx.Notifications.ProvisioningNotifications(fx.t.Context(), object, 10)
	if err != nil {
		fx.t.Fatal(err)
	}
	var notices []network.ProvisioningNotification
	for _, n := range all {
		notices = append(notices, n.Notification)
	}
	return notices
}

// newNotifyingFixture returns a fixture whose store enqueues provisioning notifications.
func newNotifyingFixture(t *testing.T) fixture {
	fx := newFixture(t, "10.0.0.0/24")
	fx.Network = portstore.New(fx.DB, portstore.Config{NotifyWebhook: true})
	return fx
}

func TestProvisioningNotification_OneForEachEndOfTheLastBlock(t *testing.T) {
	t.Parallel()
	fx := newNotifyingFixture(t)
	p := fx.createPort(cmp1)
	notice := func(entity, status string) network.ProvisioningNotification {
		return network.ProvisioningNotification{
			ObjectType:  "port",
			ObjectID:    p.ID,
			Project:     p.Project,
			Status:      status,
			CompletedBy: entity,
			Host:        cmp1,
			DeviceOwner: p.DeviceOwner,
			DeviceID:    p.DeviceID,
		}
	}
	var want []network.ProvisioningNotification
	check := func(after string) {
		t.Helper()
		if d := cmp.Diff(want, fx.notices(p.ID)); d != "" {
			t.Errorf("notifications after %s (-want +got): %s", after, d)
		}
	}

	fx.updateStatus(p.ID, l2OnCmp1)
	check("the first of two reports")
	fx.updateStatus(p.ID, dhcpReady)
	want = append(want, notice(network.DHCP, network.Active))
	check("the last report")
	fx.updateStatus(p.ID, dhcpReady, l2OnCmp1)
	check("repeated reports")
	fx.updatePort(p.ID, network.PortChange{Name: ptr("x")})
	check("a change of the name")
	fx.updateStatus(p.ID, l2LostOn(cmp1))
	fx.updateStatus(p.ID, l2OnCmp1)
	want = append(want, notice(network.L2, network.Active))
	check("the device was unplugged and plugged")

	port := portstore.Object{Type: "port", ID: p.ID}
	block := network.Report{Entity: "firewall", Event: network.ReportBlock}
	if _, err := fx.Network.AddBlock(t.Context(), port, block); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fx.Network.CompleteBlock(t.Context(), port, network.Report{Entity: "firewall"}); err != nil {
		t.Fatal(err)
	}
	want = append(want, notice("firewall", network.Active))
	check("a service completed its block")
	if _, err := fx.Network.AddBlock(t.Context(), port, block); err != nil {
		t.Fatal(err)
	}
	if _, err := fx.Network.RemoveBlock(t.Context(), port, "firewall"); err != nil {
		t.Fatal(err)
	}
	want = append(want, notice("", network.Active))
	check("the last block was removed")

	fx.updateStatus(p.ID, l2LostOn(cmp1))
	fx.updatePort(p.ID, network.PortChange{Host: ptr("")})
	check("the port lost its binding, which ends its last block")
}

func TestProvisioningNotification_OfATrunk(t *testing.T) {
	t.Parallel()
	fx := newNotifyingFixture(t)
	trunk := fx.createTrunk(fx.createPort(""))
	o := portstore.Object{Type: "trunk", ID: trunk.ID}
	for _, entity := range []string{"firewall", "billing"} {
		if _, err := fx.Network.AddBlock(t.Context(), o, network.Report{Entity: entity, Event: network.ReportBlock}); err != nil {
			t.Fatal(err)
		}
	}
	for _, entity := range []string{"firewall", "billing"} {
		if got := fx.notices(trunk.ID); got != nil {
			t.Errorf("notifications of a trunk with a block: got %+v, want none", got)
		}
		if _, _, err := fx.Network.CompleteBlock(t.Context(), o, network.Report{Entity: entity}); err != nil {
			t.Fatal(err)
		}
	}
	want := []network.ProvisioningNotification{
		{
			ObjectType:  "trunk",
			ObjectID:    trunk.ID,
			Project:     trunk.Project,
			Status:      fx.trunkStatus(trunk.ID),
			CompletedBy: "billing",
		},
	}
	if d := cmp.Diff(want, fx.notices(trunk.ID)); d != "" {
		t.Errorf("notifications after the last block of a trunk (-want +got): %s", d)
	}
}

// The query of notificationstore.Workflows lists an object until its notifications are delivered, and nothing
// is recorded without a webhook.
func TestWorkflows_ObjectWithProvisioningNotifications(t *testing.T) {
	t.Parallel()
	fx := newNotifyingFixture(t)
	p := fx.createPort(cmp1)
	fx.updateStatus(p.ID, dhcpReady, l2OnCmp1)
	id := contract.WebhookID(p.ID.String())
	ofWebhook := func(n contract.Note) bool { return n.ID == id && n.Workflow == contract.Webhook }
	if !slices.ContainsFunc(storetest.ClaimNotes(t, fx.Store), ofWebhook) {
		t.Errorf("notes after the last report: got none for the workflow %s, want one", id)
	}
	all, err := fx.Notifications.ProvisioningNotifications(t.Context(), p.ID, 10)
	if err != nil || len(all) != 1 {
		t.Fatalf("notifications: got %+v, error %v; want one", all, err)
	}
	for _, want := range []int64{1, 0} {
		if n, err := fx.Outbox.RestartWorkflows(t.Context(), []string{id}); n != want || err != nil {
			t.Errorf("restart the workflow %s: got %d restarts, want %d; error %v", id, n, want, err)
		}
		if err := fx.Notifications.DeleteProvisioningNotifications(t.Context(), []int64{all[0].ID}); err != nil {
			t.Fatal(err)
		}
	}

	fx.Network = portstore.New(fx.DB, portstore.Config{})
	other := fx.createPort(cmp1)
	fx.updateStatus(other.ID, dhcpReady, l2OnCmp1)
	if got := fx.notices(other.ID); got != nil {
		t.Errorf("notifications without a webhook: got %+v, want none", got)
	}
}

// An agent sends its last report as a signal, over HTTP or over RabbitMQ.
func TestProvisioningNotification_DoesNotDependOnTheWayOfTheReport(t *testing.T) {
	t.Parallel()
	fx := newNotifyingFixture(t)
	for name, report := range map[string]func(uuid.UUID, network.Report) error{
		"signal": func(id uuid.UUID, r network.Report) error {
			_, err := fx.Network.UpdatePortStatus(t.Context(), id, []network.Report{r})
			return err
		},
		"HTTP": func(id uuid.UUID, r network.Report) error {
			_, err := fx.Network.ReportPort(t.Context(), id, []network.Report{r})
			return err
		},
		"RabbitMQ": func(id uuid.UUID, r network.Report) error {
			_, err := fx.Network.ReportPorts(t.Context(), map[uuid.UUID][]network.Report{id: {r}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := fx.createPort(cmp1)
			for i, r := range []network.Report{l2OnCmp1, dhcpReady, dhcpReady} {
				if err := report(p.ID, r); err != nil {
					t.Fatal(err)
				}
				var want []network.ProvisioningNotification
				if i > 0 {
					want = []network.ProvisioningNotification{
						{
							ObjectType:  "port",
							ObjectID:    p.ID,
							Project:     p.Project,
							Status:      network.Active,
							CompletedBy: network.DHCP,
							Host:        cmp1,
							DeviceOwner: p.DeviceOwner,
							DeviceID:    p.DeviceID,
						},
					}
				}
				if d := cmp.Diff(want, fx.notices(p.ID)); d != "" {
					t.Errorf("notifications after report %d (-want +got): %s", i+1, d)
				}
			}
		})
	}
}
