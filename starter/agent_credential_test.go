package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"berth/internal/api/openapi/openapitest"
	"berth/internal/api/operator"
	"berth/internal/contract"
	"berth/internal/identity"
	"berth/internal/store/agentstore"
	"berth/internal/store/storetest"
	"berth/starter/cli"
)

// The private key that `starter agent key` prints signs reports that the registered public key verifies.
func TestAgentKey_SignsReports(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	agents := storetest.New(t).Agents
	server := httptest.NewServer(openapitest.API(t, operator.Description(), operator.New(operator.Options{Agents: agents, Identity: identity.Noauth{}})))
	t.Cleanup(server.Close)
	code, private := h.run(t, "agent", "key", "create", "cmp-1", "--url", server.URL)
	if code != 0 || !strings.HasPrefix(private, "-----BEGIN PRIVATE KEY-----\n") {
		t.Fatalf("register a new key: got exit code %d and %s, want the private key", code, private)
	}
	file := filepath.Join(t.TempDir(), "cmp-1.pem")
	if err := os.WriteFile(file, []byte(private), 0o600); err != nil {
		t.Fatal(err)
	}

	h.expect(t, 0, "sent", "signal",
		"port/"+h.portID, "--entity", "L2", "--host", "cmp-1", "--key", file, "-o", "json")

	var report contract.Report
	events := h.namespace.Client.GetWorkflowHistory(t.Context(), contract.PortID(h.portID), "", false,
		enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		if a := e.GetWorkflowExecutionSignaledEventAttributes(); a != nil {
			if err := converter.GetDefaultDataConverter().FromPayloads(a.Input, &report); err != nil {
				t.Fatal(err)
			}
		}
	}
	keys, err := agents.PublicKeys(t.Context(), []string{"cmp-1"})
	if refused := report.Verify(contract.PortID(h.portID), keys["cmp-1"], time.Now()); err != nil ||
		refused != "" {
		t.Errorf(
			"verify the sent report %+v: got %q, error %v, want that the registered key verifies it",
			report, refused, err,
		)
	}
	h.expect(t, cli.ExitUsage, "--key", "signal",
		"port/"+h.portID, "--entity", "L2", "--host", "cmp-1", "--key", os.DevNull)
	for _, refused := range [][]string{{"--expires-in", "25h"}, {"--expires-in", "0s"}, {"--expires-in", "-1h"}, {"--event", "block"}} {
		h.expect(
			t,
			cli.ExitUsage,
			refused[0][2:],
			append(
				[]string{"signal", "port/" + h.portID, "--entity", "x", "--host", "cmp-1", "--key", file},
				refused...)...)
	}
}

// newStarter returns a function that runs a command of starter against the operators' API, and returns the
// output of the command.
func newStarter(t *testing.T, agents *agentstore.Store) func(args ...string) string {
	t.Helper()
	server := httptest.NewServer(openapitest.API(t, operator.Description(), operator.New(operator.Options{Agents: agents, Identity: identity.Noauth{}})))
	t.Cleanup(server.Close)
	return func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := run(t.Context(), args, []string{"BERTH_DATA=" + t.TempDir(), "BERTH_URL=" + server.URL}, &out, &out); err != nil {
			t.Errorf("starter %s: error %v, output %s", strings.Join(args, " "), err, &out)
		}
		return out.String()
	}
}

func TestAgentToken_IsPrintedOnceListedAndRevoked(t *testing.T) {
	t.Parallel()
	starter := newStarter(t, storetest.New(t).Agents)
	created := starter("agent", "token", "create", "cmp-1")
	token := regexp.MustCompile(`berth_agent_\S{43}\b`).FindString(created)
	id := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(created)
	if token == "" || id == "" {
		t.Fatalf("create a token: got %s, want the ID and the token", created)
	}
	if all := starter("agent", "token", "list", "--filter", "host=cmp-1"); !strings.Contains(all, id) ||
		!strings.Contains(all, "cmp-1") ||
		strings.Contains(all, token) {
		t.Errorf("list the tokens: got %s, want %s of cmp-1 without the secret", all, id)
	}
	starter("agent", "token", "revoke", id, "--yes")
	if all := starter("agent", "token", "list"); strings.Contains(all, id) {
		t.Errorf("list the tokens after the revocation: got %s, want none", all)
	}
}

func TestAgentVirtualHost_IsRegisteredListedAndRemovedByHost(t *testing.T) {
	t.Parallel()
	agents := storetest.New(t).Agents
	starter := newStarter(t, agents)

	starter("agent", "vhost", "create", "cmp-1", "--name", "agents-1", "--type",
		"Open vSwitch agent", "--type", "DHCP agent")
	starter("agent", "vhost", "create", "cmp-2")

	all, err := agents.VirtualHosts(t.Context(), "")
	if err != nil || len(all) != 2 || all[0].Name != "agents-1" ||
		strings.Join(all[0].AgentTypes, ",") != "Open vSwitch agent,DHCP agent" ||
		all[1].Name != "cmp-2" ||
		len(all[1].AgentTypes) != 0 {
		t.Fatalf(
			"registered virtual hosts: got %+v, error %v, want agents-1 with two types of agents and cmp-2 with none",
			all,
			err,
		)
	}
	if list := starter("agent", "vhost", "list"); !strings.Contains(list, "agents-1") ||
		!strings.Contains(list, all[1].ID.String()) {
		t.Errorf("list the virtual hosts: got %s, want both", list)
	}
	starter("agent", "vhost", "remove", "cmp-1", "--yes")
	if all, err = agents.VirtualHosts(t.Context(), ""); err != nil || len(all) != 1 ||
		all[0].Host != "cmp-2" {
		t.Errorf("virtual hosts after the removal of cmp-1: got %+v, error %v, want that of cmp-2", all, err)
	}
}
