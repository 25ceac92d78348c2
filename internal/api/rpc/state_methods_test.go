package rpc_test

import (
	"fmt"
	"strings"
	"testing"

	"berth/internal/store/storetest"
)

// An agent that continued to run while its heartbeats were missing has not
// lost its state. It only needs the notifications since its last heartbeat.
func TestReportState_RevivedAgentGetsMissedNotifications(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	st.listenTo(t, "neutron-vo-Port-1.7", "cmp1", "1.1")
	st.listenTo(t, "dhcp_agent", "net1", "1.0")
	publisher := st.newPublisher(t)
	// RabbitMQ has not restarted
	if err := newRawClient(t, st.url).ExchangeDeclare("berth.memento", "fanout", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, publisher.Run)
	eventually(t, "the publisher is connected", publisher.Connected)
	port := st.createPorts(t, 1)[0]
	st.publishAll(t, publisher)
	st.receiveAbout(t, "push", port.ID)
	st.makeStale(t, "cmp1")

	o := st.request(t, map[string]any{
		"topic":   "q-reports-plugin",
		"method":  "report_state",
		"version": "1.2",
		"args": map[string]any{"time": "2026-11-20T16:56:24.405715",
			"agent_state": map[string]any{
				"agent_state": map[string]any{
					"agent_type": "Open vSwitch agent",
					"host":       "cmp1",
					"binary":     "x",
					"topic":      "N/A",
				},
			}},
	})
	if string(o.Result) != `"revived"` {
		t.Fatalf(
			"report_state after missed heartbeats: got result %s, exception %s %s; want the result revived",
			o.Result, o.Failure, o.Message,
		)
	}
	storetest.Exec(t, st.database, `update notification_replay set due_at = now()`) // no further agent revives
	eventually(t, "the notifications that the agent missed are due again", func() bool {
		due, err := st.Notifications.Unsent(t.Context(), st.network.ID, 100)
		return err == nil && len(due) > 0
	})
	st.publishAll(t, publisher)
	st.receiveAbout(t, "push", port.ID)
}

// The limits are the same as over HTTP.
func TestReportState_LimitsWhatOneHostStores(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	report := func(kind, configuration string) callResult {
		return st.request(t, map[string]any{
			"topic":   "q-reports-plugin",
			"method":  "report_state",
			"version": "1.2",
			"args": map[string]any{"time": "2026-11-20T16:56:24.405715",
				"agent_state": map[string]any{
					"agent_state": map[string]any{
						"agent_type":     kind,
						"host":           "cmp7",
						"binary":         "x",
						"topic":          "N/A",
						"configurations": map[string]any{"a": configuration},
					},
				}},
		})
	}
	if o := report("large", strings.Repeat("x", 64<<10)); o.Failure != "InvalidInput" {
		t.Errorf(
			"report_state with more than 64 KiB of configurations: got result %s, exception %s %s; want the exception InvalidInput",
			o.Result, o.Failure, o.Message,
		)
	}
	for i := range 16 {
		if o := report(fmt.Sprint("type ", i), ""); string(o.Result) != `"new"` {
			t.Fatalf("report_state of agent %d: got result %s, exception %s %s; want the result new",
				i, o.Result, o.Failure, o.Message)
		}
	}
	if o := report("type 16", ""); o.Failure != "OverQuota" {
		t.Errorf(
			"report_state of a 17th type: got result %s, exception %s %s; want the exception OverQuota",
			o.Result, o.Failure, o.Message,
		)
	}
}
