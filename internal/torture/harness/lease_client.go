package harness

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"berth/internal/server/servertest"
)

// leaseClient creates, changes and deletes short leases of hosts.
type leaseClient struct {
	*randomClient
	owned []*promise
}

// leaseHosts is the number of hosts that leases may reserve.
const leaseHosts = 6

// registerHosts registers the hosts that leases may reserve.
func (c *leaseClient) registerHosts(ctx context.Context) {
	for n := range leaseHosts {
		name, id := fmt.Sprintf("node-%d", n+1), uuid.NewString()
		c.sendUntilAcknowledged(ctx, http.MethodPost, "/placement/resource_providers",
			servertest.Object{"name": name, "uuid": id})
		c.sendUntilAcknowledged(
			ctx,
			http.MethodPut,
			"/placement/resource_providers/"+id+"/inventories",
			servertest.Object{"resource_provider_generation": 0,
				"inventories": servertest.Object{"VCPU": servertest.Object{"total": 8}}},
		)
		c.sendUntilAcknowledged(ctx, http.MethodPost, "/reservation/v1/os-hosts",
			servertest.Object{"name": name})
	}
}

func (c *leaseClient) run(ctx context.Context) {
	for ctx.Err() == nil {
		switch n := c.random.IntN(10); {
		case n < 6:
			c.create(ctx)
		case n < 8:
			c.changeEnd(ctx)
		default:
			c.delete(ctx)
		}
		c.wait(ctx, 3*time.Second)
	}
}

func leasePath(p *promise) string { return "/reservation/v1/leases/" + p.id }

// seconds returns a random duration of whole seconds.
func (c *leaseClient) seconds(from, to int) time.Duration {
	return time.Duration(from+c.random.IntN(to-from)) * time.Second
}

func (c *leaseClient) create(ctx context.Context) {
	start := c.seconds(1, 8)
	a := c.send(ctx, http.MethodPost, "/reservation/v1/leases", servertest.Object{
		"name":       "lease-" + uuid.NewString(),
		"start_date": TimeIn(start),
		"end_date":   TimeIn(start + c.seconds(3, 15)),
		"events":     []servertest.Object{},
		"reservations": []servertest.Object{
			{
				"resource_type":         "physical:host",
				"min":                   1,
				"max":                   1 + c.random.IntN(2),
				"resource_properties":   "",
				"hypervisor_properties": "",
			},
		},
	}, 0)
	if a.verdict != acknowledged {
		return
	}
	o, _ := a.body["lease"].(servertest.Object)
	p := c.ledger.created("lease", fmt.Sprint(o["id"]), readValues(o))
	c.owned = append(c.owned, p)
	if got := c.send(ctx, http.MethodGet, leasePath(p), nil, 0); got.status == http.StatusNotFound {
		c.ledger.addFinding(
			lost, p.key(), "its last acknowledgement was at %s, but the next read answered 404",
			p.at.Format(time.TimeOnly),
		)
	}
}

func (c *leaseClient) pickOwned() *promise {
	c.owned = slices.DeleteFunc(c.owned, func(p *promise) bool { return p.deletion == deleted })
	if len(c.owned) == 0 {
		return nil
	}
	return pick(c.random, c.owned)
}

func (c *leaseClient) changeEnd(ctx context.Context) {
	if p := c.pickOwned(); p != nil {
		a := c.send(ctx, http.MethodPut, leasePath(p),
			servertest.Object{"end_date": TimeIn(c.seconds(1, 15))}, 0)
		if a.verdict == acknowledged {
			c.ledger.count("update lease")
		}
	}
}

func (c *leaseClient) delete(ctx context.Context) {
	p := c.pickOwned()
	if p == nil {
		return
	}
	before := p.deletion
	c.ledger.setDeletion(p, perhapsDeleted)
	switch a := c.send(ctx, http.MethodDelete, leasePath(p), nil, 0); {
	case a.verdict == acknowledged || a.status == http.StatusNotFound && before == perhapsDeleted:
		c.ledger.setDeletion(p, deleted)
	case a.status == http.StatusNotFound:
		c.ledger.addFinding(
			lost, p.key(), "its last acknowledgement was at %s, but its deletion answered 404",
			p.at.Format(time.TimeOnly),
		)
		c.ledger.setDeletion(p, deleted)
	case a.verdict == refused:
		c.ledger.setDeletion(p, before)
	}
}
