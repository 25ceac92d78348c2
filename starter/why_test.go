package main

import (
	"testing"

	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/starter/cli"
)

func TestWhy_AsksWorkflowsWithoutARow(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := uuid.NewString()
	for word, workflow := range map[string]string{"pool/cmp-1": contract.PoolID("cmp-1"), "webhook/" + id: contract.WebhookID(id),
		"announce/" + id: contract.AnnounceID(id), "odl/full-sync": contract.RunID(contract.KeyFullSync)} {
		t.Run(word, func(t *testing.T) {
			h.expect(t, cli.ExitNotFound, "workflow "+workflow+" is not found", "why", word)

			h.startWorkflow(t, workflow, contract.PortQueue)
			h.expect(t, 0, workflow+": waiting for DHCP and L2 (from its workflow)", "why", word)

			if err := h.namespace.Client.TerminateWorkflow(t.Context(), workflow, "", "end of the test"); err != nil {
				t.Fatal(err)
			}
			h.expect(t, 0, workflow+": The workflow has ended; it starts again when there is work. (from Temporal)", "why", word)
		})
	}
}
