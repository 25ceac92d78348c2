package operator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/internal/api/operator"
	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// createTrunk creates a port on the host cmp-1 without addresses, and a trunk with this parent port. The L2
// agent of the port has reported.
func createTrunk(t *testing.T, s *store.Store) (port network.Port, trunk network.Trunk) {
	t.Helper()
	ctx, project, host := t.Context(), "p", "cmp-1"
	if _, err := s.Network.ReportState(ctx, network.AgentState{Type: "Open vSwitch agent", Host: host, Configurations: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	networks, err := s.Network.CreateNetworks(ctx, []network.NetworkChange{{Project: &project}})
	if err != nil {
		t.Fatal(err)
	}
	ports, err := s.Network.CreatePorts(ctx,
		[]network.PortChange{{Project: &project, Network: &networks[0].ID}})
	if err != nil {
		t.Fatal(err)
	}
	trunks, err := s.Network.CreateTrunks(ctx, []network.TrunkChange{{Project: &project, Port: &ports[0].ID}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.Network.UpdatePort(ctx, ports[0].ID, network.PortChange{Host: &host}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Network.ReportPort(ctx, ports[0].ID, []network.Report{{Entity: network.L2, Host: host}}); err != nil {
		t.Fatal(err)
	}
	return ports[0], trunks[0]
}

func TestBlocks_AnyEntityBlocksPortsAndTrunks(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	h := newAPI(t, operator.Options{
		Inventory:  s.Inventory,
		Network:    s.Network,
		Agents:     s.Agents,
		Outbox:     s.Outbox,
		Mirror:     s.Mirror,
		Identity:   identity.Noauth{},
		Incomplete: incompleteOwner,
	})
	port, trunk := createTrunk(t, s)
	status := map[string]func() (string, error){
		"port": func() (string, error) { p, err := s.Network.Port(t.Context(), port.ID); return p.Status, err },
		"trunk": func() (string, error) {
			all, err := s.Network.Trunks(t.Context(), db.Listing{})
			return all[0].Status, err
		},
	}
	for object, blocked := range map[string]string{"trunk/" + trunk.ID.String(): network.Build, "port/" + port.ID.String(): network.Down} {
		kind := object[:len(object)-37]
		path := "/operator/v1/blocks/" + object
		check := func(when, want string, code int, answer map[string]any, wantBlocks int) {
			t.Helper()
			list, _ := answer["blocks"].([]any)
			got, err := status[kind]()
			if err != nil || got != want || code >= 300 || len(list) != wantBlocks ||
				answer["blocked"] != (wantBlocks > 0) {
				t.Errorf("%s: got status %s, error %v, answer %d %v; want %s and %d blocks",
					when, got, err, code, answer, want, wantBlocks)
			}
		}
		code, answer := send(t, h, "admin", "GET", path, "")
		check("a "+kind+" without blocks", network.Active, code, answer, 0)
		body := `{"host":"fw-1","owner":"security team","timeout_seconds":60,"fatal":true}`
		if code, answer = send(t, h, "admin", "PUT", path+"/firewall", body); code != 201 {
			t.Errorf("add a block: got %d %v, want 201", code, answer)
		}
		check("a blocked "+kind, blocked, code, answer, 1)
		first, _ := answer["blocks"].([]any)[0].(map[string]any)
		if first["entity"] != "firewall" || first["owner"] != "security team" || first["host"] != "fw-1" ||
			first["fatal"] != true ||
			first["deadline"] == nil {
			t.Errorf("the block: got %v, want the values of the request", first)
		}
		if code, answer = send(t, h, "admin", "PUT", path+"/firewall", `{}`); code != 200 {
			t.Errorf("add the same block again: got %d %v, want 200", code, answer)
		}
		code, answer = send(t, h, "admin", "POST", path+"/firewall/complete", `{"host":"fw-2"}`)
		check("a completion from another host", blocked, code, answer, 1)
		code, answer = send(t, h, "admin", "POST", path+"/firewall/complete", `{"host":"fw-1"}`)
		check("the completion", network.Active, code, answer, 0)
		send(t, h, "ann", "PUT", path+"/audit", `{}`)
		if code, _ = send(t, h, "admin", "DELETE", path+"/audit", ""); code != 204 {
			t.Errorf("remove a block: got %d, want 204", code)
		}
		code, answer = send(t, h, "admin", "GET", path, "")
		check("after the removal", network.Active, code, answer, 0)
	}
}

func TestBlocks_NumberOfBlocksIsLimited(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	h := newAPI(t, operator.Options{
		Inventory:  s.Inventory,
		Network:    s.Network,
		Agents:     s.Agents,
		Outbox:     s.Outbox,
		Mirror:     s.Mirror,
		Identity:   identity.Noauth{},
		Incomplete: incompleteOwner,
	})
	port, trunk := createTrunk(t, s)
	for _, object := range []string{"port/" + port.ID.String(), "trunk/" + trunk.ID.String()} {
		for i := range network.MaxBlocks + 1 {
			path, want := fmt.Sprintf("/operator/v1/blocks/%s/service-%d", object, i), 201
			if i == network.MaxBlocks {
				want = 409
			}
			if code, answer := send(t, h, "admin", "PUT", path, `{}`); code != want {
				t.Fatalf("add block %d of %s: got %d %v, want %d", i+1, object, code, answer, want)
			}
		}
		if code, answer := send(t, h, "admin", "PUT", "/operator/v1/blocks/"+object+"/service-0", `{}`); code != 200 ||
			len(answer["blocks"].([]any)) != network.MaxBlocks {
			t.Errorf(
				"add an existing block of %s, which has all blocks that it can have: got %d %v, want 200 and %d blocks",
				object, code, answer, network.MaxBlocks,
			)
		}
	}
}

func TestBlocks_RefuseInvalidRequests(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	h := newAPI(t, operator.Options{
		Inventory:  s.Inventory,
		Network:    s.Network,
		Agents:     s.Agents,
		Outbox:     s.Outbox,
		Mirror:     s.Mirror,
		Identity:   identity.Noauth{},
		Incomplete: incompleteOwner,
	})
	port, _ := createTrunk(t, s)
	path := "/operator/v1/blocks/port/" + port.ID.String()
	for i, c := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/operator/v1/blocks/port/" + uuid.NewString(), "", 404},
		{"PUT", "/operator/v1/blocks/trunk/" + port.ID.String() + "/x", `{}`, 404},
		{"GET", "/operator/v1/blocks/lease/" + port.ID.String(), "", 404},
		{"GET", "/operator/v1/blocks/port/x", "", 404},
		{"DELETE", path + "/x", "", 404},
		{"PUT", path + "/DHCP", `{}`, 400},
		{"DELETE", path + "/L2", "", 400},
		{"POST", path + "/L2/complete", `{}`, 400},
		{"PUT", path + "/x", `{"timeout_seconds":-1}`, 400},
		{"PUT", path + "/x", `{"timeout_seconds":31536001}`, 400},
		{"PUT", path + "/x", `{"deadline":1}`, 400},
		{"PUT", path + "/x", `{"owner":"` + strings.Repeat("o", 256) + `"}`, 400},
		{"PUT", path + "/x", `{"host":"` + strings.Repeat("h", 256) + `"}`, 400},
		{"PUT", path + "/" + strings.Repeat("e", 49), `{}`, 400},
		{"PUT", path + "/%3Cscript%3E", `{}`, 400},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if code, answer := send(t, h, "admin", c.method, c.path, c.body); code != c.want {
				t.Errorf("%s %s %s: got %d %v, want %d", c.method, c.path, c.body, code, answer, c.want)
			}
			if code, _ := send(t, h, "eve:demo", c.method, c.path, c.body); code != 403 {
				t.Errorf("%s %s as a member: got %d, want 403", c.method, c.path, code)
			}
		})
	}
}
