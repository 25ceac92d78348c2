package rpc_test

import (
	"strings"
	"testing"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/store/storetest"
)

// RabbitMQ closes the channel of the server when a reply is too large, and then delivers the call again.
func TestCall_AnswerThatIsTooLargeIsAnError(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	ports := st.createPorts(t, 30)
	storetest.Exec(t, st.database, `update port set tags = array_fill(repeat('x', 255), array[$1::int])`,
		oslomsg.MaxReply/len(ports)/200)
	for method, args := range map[string]map[string]any{
		"get_network_info":         {"network_id": st.network.ID},
		"get_active_networks_info": {"host": "net1"},
		"get_ports":                {"filters": map[string]any{"network_id": []any{st.network.ID}}},
	} {
		got := st.request(t, map[string]any{"topic": "q-plugin", "method": method, "version": "1.0", "args": args})
		if !strings.Contains(got.Message, oslomsg.ReplyTooLarge) {
			t.Errorf("call %s, whose answer is larger than %d bytes: got the failure %q, want %q",
				method, oslomsg.MaxReply, got.Message, oslomsg.ReplyTooLarge)
		}
	}
	// the agents that wire ports need no tags
	var details struct{ Devices []map[string]any }
	st.call(t, &details, "get_devices_details_list_and_failed_devices", "1.5",
		map[string]any{"devices": []string{ports[0].ID.String()}, "host": "cmp1"})
	if len(details.Devices) != 1 || details.Devices[0]["mac_address"] == nil {
		t.Errorf("details of a port with large tags: got %v, want its attributes", details)
	}
}
