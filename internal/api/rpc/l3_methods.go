package rpc

import (
	"context"

	"berth/internal/api/rpc/oslomsg"
)

// topicL3 is the RabbitMQ topic to which L3 agents send their RPC calls.
const topicL3 = "q-l3-plugin"

// l3Methods are the methods that an L3 agent calls when it starts and when it synchronizes its routers. berth
// has no routers, so each result is empty. Without the answers, an L3 agent would wait for them and would
// never send a heartbeat.
func l3Methods() map[string]oslomsg.Method {
	returns := func(result any) oslomsg.Method {
		return oslomsg.WithArgs(func(context.Context, struct{}) (any, error) { return result, nil })
	}
	return map[string]oslomsg.Method{
		"get_host_ha_router_count": returns(0),
		"get_router_ids":           returns([]string{}),
		"get_service_plugin_list":  returns([]string{}),
		"sync_routers":             returns([]object{}),
	}
}
