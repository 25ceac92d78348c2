package rpc_test

import "testing"

func TestL3Agent_GetsNoRouters(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	for _, call := range []struct{ method, version, want string }{
		{"get_host_ha_router_count", "1.11", "0"},
		{"get_router_ids", "1.9", "[]"},
		{"get_service_plugin_list", "1.3", "[]"},
		{"sync_routers", "1.0", "[]"},
	} {
		o := st.request(t, map[string]any{
			"topic":   "q-l3-plugin",
			"method":  call.method,
			"version": call.version,
			"args":    map[string]any{"host": "net1"},
		})
		if string(o.Result) != call.want {
			t.Errorf("%s of an L3 agent: got result %s, exception %s %s; want the result %s",
				call.method, o.Result, o.Failure, o.Message, call.want)
		}
	}
}
