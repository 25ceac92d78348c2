package kills

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
)

// TestProvisioningWebhook_SentInOrderThroughOutages ends the last block of a port several times while the
// webhook fails and the process that delivers is killed. The webhook receives each end of a last block once,
// or again with the same ID.
func TestProvisioningWebhook_SentInOrderThroughOutages(t *testing.T) {
	t.Parallel()
	s, _ := servertest.SharedDeployment(t)
	listener := &notifytest.Webhook{Token: "secret"}
	listener.InjectFaults(notifytest.Fault{Status: 503, Times: 3},
		notifytest.Fault{DropConnection: true, Applied: true})
	s.Settings = append(
		s.Settings,
		"BERTH_PROVISIONING_WEBHOOK_URL="+servertest.Serve(t, listener),
		"BERTH_PROVISIONING_WEBHOOK_TOKEN=secret",
	)
	api, victim := s.StartWorker("api"), s.StartWorker("relay,temporal")
	api.RegisterAgents()
	network := api.CreateNetwork("blue")
	api.CreateSubnet(network)
	port := api.Create("port", servertest.PortBody(network))
	block := "/operator/v1/blocks/port/" + port + "/firewall"
	completeFirewall := func() {
		api.Must("PUT", block, servertest.Object{"owner": "security"})
		api.Must("POST", block+"/complete", servertest.Object{})
	}

	api.Must("POST", "/agent/v1/reports", servertest.ReportsBody(port))
	completeFirewall()
	victim.Kill()
	completeFirewall()
	s.StartWorker("relay,temporal")
	api.Must("PUT", block, servertest.Object{})
	api.Must("DELETE", block, nil)

	s.AwaitNone("no notification is pending", `select id from provisioning_notification`)
	var got []string
	ids := map[string]bool{}
	for _, n := range listener.Notifications() {
		if !ids[n.ID] {
			ids[n.ID], got = true, append(got, fmt.Sprintln(
				n.Publisher, n.Type, n.Payload["object_id"], n.Payload["status"],
				n.Payload["completed_by"] != "",
			))
		}
	}
	notice := func(completed bool) string {
		return fmt.Sprintln("berth.network", "port.provisioning_complete", port, "ACTIVE", completed)
	}
	if d := cmp.Diff([]string{notice(true), notice(true), notice(true), notice(false)}, got); d != "" {
		t.Errorf("notifications that the webhook received (-want +got): %s", d)
	}
}
