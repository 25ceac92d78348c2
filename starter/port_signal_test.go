package main

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/starter/cli"
)

func signalL2(port string, more ...string) []string {
	return append([]string{"signal", "port/" + port, "--entity", "L2", "--host", "cmp-1"}, more...)
}

func TestSignal_AckAnswersWithTheRemainingBlocks(t *testing.T) {
	t.Parallel()
	h := newHarness(t)

	h.expect(t, 0, "waiting for DHCP and L2 (from its workflow)", "why", "port/web-1")
	h.expect(t, cli.ExitOther, "the port has no block NONSENSE",
		"signal", "port/web-1", "--entity", "NONSENSE", "--host", "cmp-1", "--ack")
	h.expect(t, 0, "DOWN, still blocked by DHCP, L2",
		"signal", "port/web-1", "--entity", "L2", "--host", "elsewhere", "--ack")
	h.expect(t, 0, "DOWN, still blocked by DHCP, L2", signalL2("web-1", "--revision", "1", "--ack")...)
	h.expect(t, 0, "DOWN, still blocked by DHCP", signalL2("web-1", "--revision", "2", "--ack")...)
	h.expect(t, 0, "DOWN, still blocked by DHCP, L2", signalL2("web-1", "--event", "lost", "--ack")...)
	h.expect(t, 0, "sent the event complete of L2 on cmp-1", signalL2(h.portID, "--event", "complete")...)
	h.expect(t, 0, "waiting for DHCP (from its workflow)", "why", "port/web-1")
	h.expect(t, 0, `"remaining": []`,
		"signal", "port/web-1", "--entity", "DHCP", "--host", "cmp-1", "--ack", "-o", "json")
	if err := h.namespace.Client.GetWorkflow(t.Context(), contract.PortID(h.portID), "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}

	h.expect(t, 0, "explanation of the API (from the API; its workflow is closed or not found)",
		"why", "port/web-1")
	h.expect(t, cli.ExitNotFound, "could not be found", "why", "port/"+uuid.NewString())
}

// A workflow that was terminated by mistake is restarted. In TestSignal_WaitsForTheRestartOfAClosedWorkflow,
// the workflow is restarted when the command `signal` asks the API whether the port exists.
func TestSignal_WaitsForTheRestartOfAClosedWorkflow(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]string{"signal": nil, "update": {"--ack"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			terminate := func(port string) {
				if err := h.namespace.Client.TerminateWorkflow(t.Context(), contract.PortID(port), "", "by mistake"); err != nil {
					t.Fatal(err)
				}
			}
			deleted := uuid.NewString()
			h.startWorkflow(t, contract.PortID(deleted), contract.PortQueue)
			terminate(deleted)
			h.startWorkflow(t, contract.PortID(h.unstarted), contract.PortQueue)
			terminate(h.unstarted)
			var once sync.Once
			h.stub.onRequest = func(r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/ports/"+h.unstarted) {
					once.Do(func() { h.startWorkflow(t, contract.PortID(h.unstarted), contract.PortQueue) })
				}
			}

			h.expect(t, 0, "port/"+h.unstarted, signalL2(h.unstarted, more...)...)
			h.expect(t, cli.ExitNotFound, "is closed", signalL2(deleted, more...)...)
		})
	}
}

// The row of a port exists before the workflow of the port starts. In
// TestSignal_WaitsForTheWorkflowOfAnExistingPort, the workflow starts when the command `signal` asks the API
// whether the port exists.
func TestSignal_WaitsForTheWorkflowOfAnExistingPort(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]string{"signal": nil, "update": {"--ack"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			var once sync.Once
			h.stub.onRequest = func(r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/ports/"+h.unstarted) {
					once.Do(func() { h.startWorkflow(t, contract.PortID(h.unstarted), contract.PortQueue) })
				}
			}

			h.expect(t, 0, "port/"+h.unstarted, signalL2("unstarted", more...)...)
			h.expect(t, cli.ExitNotFound, "workflow port/"+uuid.Nil.String()+" is not found",
				signalL2(uuid.Nil.String(), more...)...)
		})
	}
}

func TestSignal_AckTimesOutWithoutWorkers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := uuid.NewString()
	h.startWorkflow(t, contract.PortID(id), "queue-without-workers")

	h.expect(t, cli.ExitWait, "did not answer within 1s", signalL2(id, "--ack", "--timeout", "1s")...)
}
