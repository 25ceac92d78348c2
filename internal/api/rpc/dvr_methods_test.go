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
			t.Errorf("DVR MAC of host %s: got %v, want an address with fa:16:3f", host, m)
		}
		return m["mac_address"]
	}
	first := macOf("cmp1")
	if again := macOf("cmp1"); again != first {
		t.Errorf("DVR MAC of cmp1: the first call returned %s, the second %s; want the same", first, again)
	}
	if other := macOf("cmp2"); other == first {
		t.Errorf("cmp1 and cmp2 have the same DVR MAC %s", first)
	}
	var all []map[string]string
	st.call(t, &all, "get_dvr_mac_address_list", "1.0", map[string]any{})
	if len(all) != 2 {
		t.Errorf("list of DVR MACs: got %v, want two", all)
	}
	st.publishAll(t, publisher)
	if args := st.receiveMethod(t, "dvr_mac_address_update"); len(args["dvr_macs"].([]any)) != 2 {
		t.Errorf("dvr_mac_address_update: got %v, want two DVR MACs", args)
	}
	st.call(t, nil, "get_dvr_mac_address_by_host", "1.0", map[string]any{"host": ""})
}
