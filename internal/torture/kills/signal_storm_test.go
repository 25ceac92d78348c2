package kills

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// sendStorm sends signals to a workflow: 600 signals, or 50 signals per round of `make races`. sendStorm
// sends the signals in bursts. A burst has so many signals that the workflow interrupts the activity that it
// is running and continues as new. After each burst, sendStorm waits until the workflow has continued as new.
// This wait is necessary because Temporal handles signals before a workflow task of the same workflow, so
// that signals without a pause could delay the workflow task until the last signal. sendStorm returns the
// number of signals.
func sendStorm(t *testing.T, s *servertest.Deployment, c client.Client, id, name string, arg any) int {
	t.Helper()
	const burst = 600
	n := max(burst, 50*storetest.Rounds(t, 12)/burst*burst)
	for sent := 0; sent < n; sent += burst {
		run := runID(s, c, id)
		sendBurst(t, c, burst, id, name, arg)
		s.Await("the workflow continues as new", func() string {
			if runID(s, c, id) != run {
				return ""
			}
			return "it is still the same run"
		})
	}
	return n
}

// sendBurst sends n signals from 8 senders. sendBurst repeats a signal whose call timed out, and fails the
// test if Temporal refuses a signal.
func sendBurst(t *testing.T, c client.Client, n int, id, name string, arg any) {
	t.Helper()
	const senders = 8
	var wait sync.WaitGroup
	for range senders {
		wait.Go(func() {
			for range n / senders {
				for {
					err := c.SignalWorkflow(t.Context(), id, "", name, arg)
					_, full := errors.AsType[*serviceerror.InvalidArgument](err)
					_, ended := errors.AsType[*serviceerror.NotFound](err)
					if full || ended || t.Context().Err() != nil {
						t.Errorf("signal to %s: got error %v, want Temporal to accept it", id, err)
						return
					}
					if err == nil {
						break
					}
				}
			}
		})
	}
	wait.Wait()
}

// checkHistories checks that no run of a workflow, from the given first run on, is near Temporal's limits of
// 10,000 signals and of the length of a history.
func checkHistories(t *testing.T, c client.Client, id, run string) {
	t.Helper()
	const maxSignals, maxEvents = 1_800, 10_240
	runs, most, longest := 0, 0, 0
	for ; run != ""; runs++ {
		signals, events, next := 0, 0, ""
		for i := c.GetWorkflowHistory(t.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); i.HasNext(); events++ {
			e, err := i.Next()
			if err != nil {
				t.Fatal(err)
			}
			if e.GetWorkflowExecutionSignaledEventAttributes() != nil {
				signals++
			}
			if a := e.GetWorkflowExecutionContinuedAsNewEventAttributes(); a != nil {
				next = a.GetNewExecutionRunId()
			}
		}
		most, longest, run = max(most, signals), max(longest, events), next
	}
	t.Logf("%s had %d runs, with at most %d signals and %d events", id, runs, most, longest)
	if most > maxSignals || longest > maxEvents {
		t.Errorf("runs of %s: got up to %d signals and %d events, want at most %d and %d",
			id, most, longest, maxSignals, maxEvents)
	}
}

func firstRun(t *testing.T, c client.Client, id string) string {
	t.Helper()
	d, err := c.DescribeWorkflowExecution(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	return d.GetWorkflowExecutionInfo().GetFirstRunId()
}

func why(t *testing.T, c client.Client, id string) (w contract.Why, err error) {
	t.Helper()
	v, err := c.QueryWorkflow(t.Context(), id, "", contract.QueryWhy)
	if err == nil {
		err = v.Get(&w)
	}
	return w, err
}

// TestSignalStorm_NoReportLostWhileNovaIsAway sends many reports to a port while Nova is away. Temporal must
// accept every report, berth must count every report, and Nova must get each event once and in order when it
// is back.
func TestSignalStorm_NoReportLostWhileNovaIsAway(t *testing.T) {
	t.Parallel()
	s, c := servertest.SharedDeployment(t)
	var up atomic.Bool
	s.Settings = append(
		s.Settings,
		"BERTH_NOVA_URL="+servertest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !up.Load() {
				panic(http.ErrAbortHandler)
			}
			s.Nova.ServeHTTP(w, r)
		})),
	)
	api := s.StartWorker("api,relay,temporal")
	api.RegisterAgents()
	network := api.CreateNetwork("blue")
	api.CreateSubnet(network)
	port := api.Create("port", servertest.PortBody(network))
	api.Must("PUT", "/networking/v2.0/ports/"+port,
		servertest.Object{"port": servertest.Object{"name": "web"}})
	id := contract.PortID(port)
	s.Await("the port says that Nova is away", func() string {
		if w, err := why(t, c, id); err != nil || w.LastError == "" {
			return fmt.Sprint(w, err)
		}
		return ""
	})
	first := firstRun(t, c, id)

	n := sendStorm(t, s, c, id, contract.SignalProvisioningComplete,
		contract.Report{Entity: "L2", Host: "elsewhere"})
	for entity, host := range map[string]string{"L2": "cmp-1", "DHCP": "net-1"} {
		if err := c.SignalWorkflow(t.Context(), id, "", contract.SignalProvisioningComplete, contract.Report{Entity: entity, Host: host}); err != nil {
			t.Fatal(err)
		}
	}
	s.AwaitActive(api, []string{port})
	s.Await("every report is counted", func() string {
		if w, err := why(t, c, id); err != nil || w.IgnoredReports < int64(n) {
			return fmt.Sprint(w, err)
		}
		return ""
	})
	up.Store(true)
	s.AwaitNone("all Nova events are sent", `select name || ' ' || port_id from nova_event`)

	received := []string{}
	for _, e := range s.Nova.Events() {
		received = append(received, e.Name)
	}
	if d := cmp.Diff([]string{"network-changed", "network-vif-plugged"}, received); d != "" {
		t.Errorf("events that Nova received (-want +got):\n%s", d)
	}
	checkHistories(t, c, id, first)
}

// TestSignalStorm_NotificationsArriveAfterRabbitMQOutage sends many nudges to the workflow that notifies
// agents while RabbitMQ is away.
func TestSignalStorm_NotificationsArriveAfterRabbitMQOutage(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "berth-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	broker, err := devstack.StartRabbitMQ(t.Context(), dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Kill)
	s, c := servertest.SharedDeployment(t)
	s.Settings = append(s.Settings, "BERTH_RABBITMQ_URL="+broker.URL(0))
	api := s.StartWorker("api,relay,temporal")
	s.StartWorker("rpc")
	api.RegisterAgents()
	broker.Kill()
	network := api.CreateNetwork("blue")
	api.Create("port", servertest.PortBody(network))
	id := contract.AgentNotificationsID(network)
	s.Await("the notifications wait for RabbitMQ", func() string {
		if w, err := why(t, c, id); err != nil || w.LastError == "" {
			return fmt.Sprint(w, err)
		}
		return ""
	})
	first := firstRun(t, c, id)

	sendStorm(t, s, c, id, contract.SignalChanged, nil)
	if err := broker.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.AwaitNone("all notifications are published",
		`select kind from agent_notification where sent_at is null`)
	checkHistories(t, c, id, first)
}
