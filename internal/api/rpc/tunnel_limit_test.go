package rpc_test

import (
	"fmt"
	"testing"
	"time"

	"berth/internal/api/rpc"
)

// Each change notifies the agents of all hosts. A call that would wait longer than its timeout fails at once.
func TestSender_ChangesItsTunnelEndpointAgainAndAgainOnlySlowly(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t, func(o *rpc.Options) { o.MaxCallTime = 5 * time.Second })
	sync := func(address int) string {
		_, exception := f.call(t, "tunnel_sync",
			fmt.Sprintf(`{"tunnel_ip":"192.0.2.%d","tunnel_type":"vxlan","host":"cmp2"}`, address))
		return exception
	}
	const enough = 100 // a slow machine makes fewer calls than the limit allows
	last := 0
	for ; last < enough && sync(last+1) == ""; last++ {
	}
	if last < 3 || last == enough {
		t.Fatalf("changes of the tunnel endpoint without a pause: got %d, want some, but fewer than %d", last, enough)
	}
	for range 10 {
		if exception := sync(last); exception != "" {
			t.Errorf("synchronization without a change: got the exception %s, want none", exception)
		}
	}
	ends, err := f.Network.TunnelEnds(t.Context(), "vxlan")
	if want := fmt.Sprintf("192.0.2.%d", last); err != nil || len(ends) != 1 || ends[0].IP.String() != want {
		t.Errorf("tunnel endpoints: got %v, error %v; want %s", ends, err, want)
	}
}
