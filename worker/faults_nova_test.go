package main

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/store/storetest"
)

// What Nova does with requests for a while.
const (
	novaIsWell = iota
	novaIsAway // the connection ends without an answer
	novaKnowsNobody
)

// A Nova that is away for an hour, or that does not know a server yet, blocks no port, and hears everything in its order.
func TestNovaThatIsAwayBlocksNoPortAndHearsEverythingLater(t *testing.T) {
	t.Parallel()
	s, _ := sharedSite(t)
	var state, refused atomic.Int64
	s.settings = append(s.settings, "BERTH_NOVA_URL="+serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch state.Load() {
		case novaIsAway:
			refused.Add(1)
			panic(http.ErrAbortHandler)
		case novaKnowsNobody:
			refused.Add(1)
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"itemNotFound":{"code":404,"message":"No instances found for any event"}}`))
		default:
			s.nova.ServeHTTP(w, r)
		}
	})))
	api, victim := s.start("api"), s.start("relay,temporal")
	api.agents()
	network := api.network("blue")
	api.subnet(network)
	plug := func() string {
		port := api.create("port", portOf(network))
		api.must("POST", "/agent/v1/reports", reportsOn(port))
		return port
	}
	tried := func(n int64) {
		t.Helper()
		s.until(fmt.Sprintf("Nova refused %d requests", n), func() string {
			if got := refused.Load(); got < n {
				return fmt.Sprintf("it refused %d", got)
			}
			return ""
		})
	}

	state.Store(novaIsAway)
	plain, unplugged, changed, deleted := plug(), plug(), plug(), plug()
	s.active(api, []string{plain, unplugged, changed, deleted})
	api.must("POST", "/agent/v1/reports", object{"reports": []object{{"port": unplugged, "entity": "L2", "host": "cmp-1", "event": "lost"}}})
	for _, name := range []string{"a", "b", "c"} {
		api.must("PUT", "/networking/v2.0/ports/"+changed, object{"port": object{"name": name}})
	}
	api.must("DELETE", "/networking/v2.0/ports/"+deleted, nil)
	tried(5)
	victim.kill()
	storetest.Exec(t, s.db, `update nova_event set created_at = created_at - interval '1 hour'`)
	s.start("relay,temporal")
	tried(refused.Load() + 4)
	state.Store(novaIsWell)
	s.none("Nova is told of everything", `select name || ' ' || port_id from nova_event`)

	state.Store(novaKnowsNobody)
	before := refused.Load()
	early := plug()
	s.active(api, []string{early})
	tried(before + 2)
	state.Store(novaIsWell)
	s.none("Nova is told when it knows the server", `select name || ' ' || port_id from nova_event`)

	heard := map[string][]string{}
	for _, e := range s.nova.Events() {
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
