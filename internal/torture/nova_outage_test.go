package torture

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// What Nova does with requests for a while.
const (
	novaIsWell = iota
	novaIsAway // the connection ends without an answer
	novaKnowsNobody
)

// A Nova that is away for an hour, or that does not know a server yet, blocks no port, and hears everything in its order.
func TestNovaOutage_PortsActiveAndEventsSentLater(t *testing.T) {
	t.Parallel()
	s, _ := servertest.SharedDeployment(t)
	var state, refused atomic.Int64
	s.Settings = append(s.Settings, "BERTH_NOVA_URL="+servertest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch state.Load() {
		case novaIsAway:
			refused.Add(1)
			panic(http.ErrAbortHandler)
		case novaKnowsNobody:
			refused.Add(1)
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"itemNotFound":{"code":404,"message":"No instances found for any event"}}`))
		default:
			s.Nova.ServeHTTP(w, r)
		}
	})))
	api, victim := s.StartWorker("api"), s.StartWorker("relay,temporal")
	api.RegisterAgents()
	network := api.CreateNetwork("blue")
	api.CreateSubnet(network)
	plug := func() string {
		port := api.Create("port", servertest.PortBody(network))
		api.Must("POST", "/agent/v1/reports", servertest.ReportsBody(port))
		return port
	}
	tried := func(n int64) {
		t.Helper()
		s.Await(fmt.Sprintf("Nova refused %d requests", n), func() string {
			if got := refused.Load(); got < n {
				return fmt.Sprintf("it refused %d", got)
			}
			return ""
		})
	}

	state.Store(novaIsAway)
	plain, unplugged, changed, deleted := plug(), plug(), plug(), plug()
	s.AwaitActive(api, []string{plain, unplugged, changed, deleted})
	api.Must("POST", "/agent/v1/reports", servertest.Object{"reports": []servertest.Object{{"port": unplugged, "entity": "L2", "host": "cmp-1", "event": "lost"}}})
	for _, name := range []string{"a", "b", "c"} {
		api.Must("PUT", "/networking/v2.0/ports/"+changed, servertest.Object{"port": servertest.Object{"name": name}})
	}
	api.Must("DELETE", "/networking/v2.0/ports/"+deleted, nil)
	tried(5)
	victim.Kill()
	storetest.Exec(t, s.Database, `update nova_event set created_at = created_at - interval '1 hour'`)
	s.StartWorker("relay,temporal")
	tried(refused.Load() + 4)
	state.Store(novaIsWell)
	s.AwaitNone("Nova is told of everything", `select name || ' ' || port_id from nova_event`)

	state.Store(novaKnowsNobody)
	before := refused.Load()
	early := plug()
	s.AwaitActive(api, []string{early})
	tried(before + 2)
	state.Store(novaIsWell)
	s.AwaitNone("Nova is told when it knows the server", `select name || ' ' || port_id from nova_event`)

	heard := map[string][]string{}
	for _, e := range s.Nova.Events() {
		heard[e.Tag] = append(heard[e.Tag], e.Name)
	}
	if d := cmp.Diff(map[string][]string{
		plain:     {"network-vif-plugged"},
		unplugged: {"network-vif-plugged", "network-vif-unplugged"},
		changed:   {"network-vif-plugged", "network-changed"},
		deleted:   {"network-vif-plugged", "network-vif-deleted"},
		early:     {"network-vif-plugged"},
	}, heard); d != "" {
		t.Error(d)
	}
}
