package torture

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"berth/internal/contract"
	"berth/internal/server/servertest"
)

func TestHosts_PooledAfterNovaOutage(t *testing.T) {
	t.Parallel()
	o := newOvercast(t)
	o.StartWorker("relay,temporal")
	met, lift := o.refuse("GET", "/os-aggregates", http.StatusServiceUnavailable)
	p := o.plot(t, 3) // which nobody has to wait for
	o.Await("Nova was asked in vain", func() string { return map[bool]string{true: "not yet"}[met() < 4] })
	if code, _, _ := o.api.Do("DELETE", "/reservation/v1/os-hosts/"+p.ids[2], nil); code != http.StatusNoContent {
		t.Errorf("a host cannot go while Nova is away: %d", code)
	}
	lift()
	pooled := func(want string) {
		t.Helper()
		o.Await("the pool is "+want, func() string {
			if got := p.pools(); got != want {
				return "it is " + got
			}
			return ""
		})
		o.AwaitNone("Nova has heard of all", `select service_name from host_pooling`)
	}
	pooled("freepool:1,2")

	l := p.lease(time.Hour, 2*time.Hour, p.whole(2, 2))
	if code, body, _ := o.api.Do("DELETE", "/reservation/v1/os-hosts/"+p.ids[0], nil); code != http.StatusConflict {
		t.Errorf("a host goes that a lease needs: %d %v", code, body)
	}
	l.begin()
	l.becomes("ACTIVE")
	l.settles("a:1,2")
	o.api.Must("DELETE", l.path, nil)
	l.gone()
	pooled("freepool:1,2")
	o.api.Must("DELETE", "/reservation/v1/os-hosts/"+p.ids[0], nil)
	pooled("freepool:2")
	o.api.Must("POST", "/reservation/v1/os-hosts", servertest.Object{"name": p.hosts[0], "row": p.name})
	pooled("freepool:1,2")
	if id := contract.PoolID(p.hosts[0]); contract.Key(id) != p.hosts[0] {
		t.Error(fmt.Sprint(id))
	}
}
