package kills

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// States of the stub of Nova.
const (
	novaUp   = iota
	novaDown // closes connections without an answer
	novaKnowsNoServer
)

// TestNovaOutage_PortsActiveAndEventsSentLater simulates an outage of Nova of one hour. After the simulated
// outage, the stub of Nova first answers external events with 404, as if Nova did not know the servers.
// During the outage, ports must become ACTIVE; after the outage, Nova must receive all events in the order in
// which berth recorded them.
func TestNovaOutage_PortsActiveAndEventsSentLater(t *testing.T) {
	t.Parallel()
	s, _ := servertest.SharedDeployment(t)
	var state, refused atomic.Int64
	s.Settings = append(
		s.Settings,
		"BERTH_NOVA_URL="+servertest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch state.Load() {
			case novaDown:
				refused.Add(1)
				panic(http.ErrAbortHandler)
			case novaKnowsNoServer:
				refused.Add(1)
				w.WriteHeader(http.StatusNotFound)
				_, _ = w.Write(
					[]byte(`{"itemNotFound":{"code":404,"message":"No instances found for any event"}}`),
				)
			default:
				s.Nova.ServeHTTP(w, r)
			}
		})),
	)
	api, victim := s.StartWorker("api"), s.StartWorker("relay,temporal")
	api.RegisterAgents()
	network := api.CreateNetwork("blue")
	api.CreateSubnet(network)
	plug := func() string {
		port := api.Create("port", servertest.PortBody(network))
		api.Must("POST", "/agent/v1/reports", servertest.ReportsBody(port))
		return port
	}
	awaitRefusals := func(n int64) {
		t.Helper()
		s.Await(fmt.Sprintf("Nova refused %d requests", n), func() string {
			if got := refused.Load(); got < n {
				return fmt.Sprintf("Nova refused %d requests so far", got)
			}
			return ""
		})
	}

	state.Store(novaDown)
	plain, unplugged, changed, deleted := plug(), plug(), plug(), plug()
	s.AwaitActive(api, []string{plain, unplugged, changed, deleted})
	api.Must("POST", "/agent/v1/reports", servertest.Object{
		"reports": []servertest.Object{
			{
				"port":   unplugged,
				"entity": "L2",
				"host":   "cmp-1",
				"event":  "lost",
			},
		},
	})
	for _, name := range []string{"a", "b", "c"} {
		api.Must("PUT", "/networking/v2.0/ports/"+changed,
			servertest.Object{"port": servertest.Object{"name": name}})
	}
	api.Must("DELETE", "/networking/v2.0/ports/"+deleted, nil)
	awaitRefusals(5)
	victim.Kill()
	storetest.Exec(t, s.Database, `update nova_event set created_at = created_at - interval '1 hour'`)
	s.StartWorker("relay,temporal")
	awaitRefusals(refused.Load() + 4)
	state.Store(novaUp)
	s.AwaitNone("all Nova events are sent", `select name || ' ' || port_id from nova_event`)

	state.Store(novaKnowsNoServer)
	before := refused.Load()
	early := plug()
	s.AwaitActive(api, []string{early})
	awaitRefusals(before + 2)
	state.Store(novaUp)
	s.AwaitNone("the events are sent after Nova knows the server",
		`select name || ' ' || port_id from nova_event`)

	received := map[string][]string{}
	for _, e := range s.Nova.Events() {
		received[e.Tag] = append(received[e.Tag], e.Name)
	}
	if d := cmp.Diff(map[string][]string{
		plain:     {"network-vif-plugged"},
		unplugged: {"network-vif-plugged", "network-vif-unplugged"},
		changed:   {"network-vif-plugged", "network-changed"},
		deleted:   {"network-vif-plugged", "network-vif-deleted"},
		early:     {"network-vif-plugged"},
	}, received); d != "" {
		t.Error(d)
	}
}
