package rpc_test

import (
	"strings"
	"testing"
)

func TestDVRMAC_IsUniquePerHost(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	st.listenTo(t, "q-agent-notifier-dvr-update", "cmp1", "1.0")
	publisher := st.newPublisher(t)
	macOf := func(host string) string {
		t.Helper()
		var m map[string]string
		st.call(t, &m, "get_dvr_mac_address_by_host", "1.0", map[string]any{"host": host})
		if m["host"] != host || !strings.HasPrefix(m["mac_address"], "fa:16:3f:") {
			t.Errorf(
				"get the DVR MAC of host %s: got %v, want this host and an address that begins with fa:16:3f",
				host,
				m,
			)
		}
		return m["mac_address"]
	}
	first := macOf("cmp1")
	if again := macOf("cmp1"); again != first {
		t.Errorf("get the DVR MAC of cmp1 twice: got %s and %s, want the same address", first, again)
	}
	if other := macOf("cmp2"); other == first {
		t.Errorf("get the DVR MACs of cmp1 and cmp2: got %s for both, want different addresses", first)
	}
	var all []map[string]string
	st.call(t, &all, "get_dvr_mac_address_list", "1.0", map[string]any{})
	if len(all) != 2 {
		t.Errorf("list the DVR MACs of two hosts: got %v, want two", all)
	}
	st.publishAll(t, publisher)
	if args := st.receiveMethod(t, "dvr_mac_address_update"); len(args["dvr_macs"].([]any)) != 2 {
		t.Errorf("receive dvr_mac_address_update: got %v, want two DVR MACs", args)
	}
	st.call(t, nil, "get_dvr_mac_address_by_host", "1.0", map[string]any{"host": ""})
}
