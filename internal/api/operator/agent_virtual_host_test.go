package operator_test

import (
	"net/http"
	"strings"
	"testing"

	"berth/internal/api/operator"
	"berth/internal/identity"
	"berth/internal/store/storetest"
)

func TestAgentVirtualHosts_AreRegisteredListedAndRemoved(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	h := newAPI(t, operator.Options{Agents: s.Agents, Identity: identity.Noauth{}})
	const path = "/operator/v1/agent-vhosts"
	status, made := send(t, h, "ann:demo", "POST", path,
		`{"host":"cmp-1","name":"agents-1","agent_types":["Open vSwitch agent"]}`)
	if status != http.StatusCreated || made["host"] != "cmp-1" || made["name"] != "agents-1" {
		t.Fatalf("register a virtual host: got %d %v, want 201 with the host and the name", status, made)
	}
	if status, second := send(t, h, "ann:demo", "POST", path, `{"host":"cmp-2"}`); status != http.StatusCreated ||
		second["name"] != "cmp-2" {
		t.Errorf("register a virtual host without a name: got %d %v, want 201 and the name of the host",
			status, second)
	}

	status, answer := send(t, h, "ann:demo", "GET", path+"?host=cmp-1", "")

	all, _ := answer["agent_vhosts"].([]any)
	if status != http.StatusOK || len(all) != 1 || all[0].(map[string]any)["id"] != made["id"] {
		t.Fatalf("list the virtual host of cmp-1: got %d %v, want 200 and the ID %v",
			status, answer, made["id"])
	}
	if types := all[0].(map[string]any)["agent_types"].([]any); len(types) != 1 ||
		types[0] != "Open vSwitch agent" {
		t.Errorf("listed types of agents: got %v, want the Open vSwitch agent", types)
	}
	for _, want := range []int{http.StatusNoContent, http.StatusNotFound} {
		if status, answer := send(t, h, "ann:demo", "DELETE", path+"/"+made["id"].(string), ""); status != want {
			t.Errorf("remove the virtual host: got %d %v, want %d", status, answer, want)
		}
	}
	if left, err := s.Agents.VirtualHosts(t.Context(), ""); err != nil || len(left) != 1 ||
		left[0].Host != "cmp-2" {
		t.Errorf("virtual hosts after the removal: got %v, error %v, want that of cmp-2", left, err)
	}
}

func TestAgentVirtualHosts_RefuseInvalidRequests(t *testing.T) {
	t.Parallel()
	h := newAPI(t, operator.Options{Agents: storetest.New(t).Agents, Identity: identity.Noauth{}})
	long := strings.Repeat("h", 256)
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "", `{"host":"cmp-1"}`, 201}, {"POST", "", `{"host":"cmp-1","name":"other"}`, 409}, {"POST", "", `{"host":"cmp-2","name":"cmp-1"}`, 409},
		{"POST", "", `{}`, 400}, {"POST", "", `{"host":""}`, 400}, {"POST", "", `{"host":"` + long + `"}`, 400}, {"POST", "", `{"host":"a\nb"}`, 400},
		{"POST", "", `{"host":"a","name":""}`, 400}, {"POST", "", `{"host":"a","name":"` + long + `"}`, 400}, {"POST", "", `{"host":"a","kind":"b"}`, 400},
		{"POST", "", `{"host":"a","agent_types":[""]}`, 400}, {"POST", "", `{"host":"a","agent_types":["b"` + strings.Repeat(`,"b"`, 20) + `]}`, 400},
		{"GET", "?limit=3", "", 400}, {"GET", "?host=a&host=b", "", 400}, {"DELETE", "/x", "", 404},
	} {
		if status, answer := send(t, h, "ann:demo", c.method, "/operator/v1/agent-vhosts"+c.path, c.body); status != c.want {
			t.Errorf("%s %q with %q: got %d %v, want %d", c.method, c.path, c.body, status, answer, c.want)
		}
	}
}
