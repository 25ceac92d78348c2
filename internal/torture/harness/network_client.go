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

// networkClient creates, changes and deletes objects of the Networking API. No other client changes these
// objects.
type networkClient struct {
	*randomClient
	agents  *agentInterfaces
	network *promise
	owned   []*promise // objects of this client, without its network
	blocks  int        // number of subnets that the client has created so far
}

// maxOwned is the maximum number of objects that one client owns at a time.
const maxOwned = 30

func (c *networkClient) run(ctx context.Context) {
	for ctx.Err() == nil {
		if c.network == nil {
			c.createNetwork(ctx)
		} else {
			c.step(ctx)
		}
		c.wait(ctx, 300*time.Millisecond)
	}
}

func (c *networkClient) step(ctx context.Context) {
	switch n := c.random.IntN(100); {
	case n < 20 && len(c.owned) < maxOwned:
		c.createPort(ctx)
	case n < 22 && len(c.owned) < maxOwned:
		c.create(ctx, "security_group", servertest.Object{})
	case n < 26:
		c.createTrunk(ctx)
	case n < 70:
		if p := c.pickOwned("port"); p != nil {
			c.agents.report(ctx, c.randomClient, p)
		}
	case n < 78:
		if p := c.pickOwned("port"); p != nil {
			c.update(ctx, p, "host", fmt.Sprintf("cmp-%d", 1+c.random.IntN(computeHosts)))
		}
	case n < 88:
		c.update(ctx, c.pickOwned(""), "name", "renamed-"+uuid.NewString())
	case n < 90:
		c.update(ctx, c.network, "name", "renamed-"+uuid.NewString())
	default:
		if p := c.pickOwned(""); p != nil && p.kind != "subnet" {
			c.delete(ctx, p)
		}
	}
}

// pickOwned returns a random object of the given kind that this client owns and has not deleted; an empty
// kind means any kind. It returns nil if there is no such object.
func (c *networkClient) pickOwned(kind string) *promise {
	c.owned = slices.DeleteFunc(c.owned, func(p *promise) bool { return p.deletion == deleted })
	var found []*promise
	for _, p := range c.owned {
		if kind == "" || p.kind == kind {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return pick(c.random, found)
}

func (c *networkClient) createNetwork(ctx context.Context) {
	if c.network = c.create(ctx, "network", servertest.Object{}); c.network == nil {
		return
	}
	c.owned = c.owned[:0]
	for ctx.Err() == nil {
		c.blocks++
		body := servertest.SubnetBody(c.network.id)
		body["cidr"] = fmt.Sprintf("10.20.%d.0/24", c.blocks%256)
		if c.create(ctx, "subnet", body) != nil {
			return
		}
		c.wait(ctx, time.Second)
	}
}

func (c *networkClient) createPort(ctx context.Context) {
	body := servertest.PortBody(c.network.id)
	body["binding:host_id"] = fmt.Sprintf("cmp-%d", 1+c.random.IntN(computeHosts))
	c.create(ctx, "port", body)
}

func (c *networkClient) createTrunk(ctx context.Context) {
	parent, child := c.pickOwned("port"), c.pickOwned("port")
	if parent == nil || parent == child {
		return
	}
	c.create(ctx, "trunk", servertest.Object{"port_id": parent.id,
		"sub_ports": []servertest.Object{
			{"port_id": child.id, "segmentation_type": "vlan", "segmentation_id": 1 + c.random.IntN(4000)},
		}})
}

func collection(kind string) string {
	if kind == "security_group" {
		return "/networking/v2.0/security-groups"
	}
	return "/networking/v2.0/" + kind + "s"
}

func path(p *promise) string { return collection(p.kind) + "/" + p.id }

// readValues returns those attributes of an object that the ledger records.
func readValues(o servertest.Object) map[string]string {
	values := map[string]string{"name": fmt.Sprint(o["name"])}
	if host, ok := o["binding:host_id"]; ok {
		values["host"] = fmt.Sprint(host)
	}
	return values
}

func (c *networkClient) create(ctx context.Context, kind string, body servertest.Object) *promise {
	body["name"] = kind + "-" + uuid.NewString()
	a := c.send(ctx, http.MethodPost, collection(kind), servertest.Object{kind: body}, 0)
	if a.verdict != acknowledged {
		return nil
	}
	o, _ := a.body[kind].(servertest.Object)
	p := c.ledger.created(kind, fmt.Sprint(o["id"]), readValues(o))
	if kind != "network" {
		c.owned = append(c.owned, p)
	}
	c.checkVisible(ctx, p)
	return p
}

// checkVisible checks that the next read shows what berth has acknowledged, and returns the object's
// revision, or 0 if no answer came.
func (c *networkClient) checkVisible(ctx context.Context, p *promise) (revision int64) {
	a := c.send(ctx, http.MethodGet, path(p), nil, 0)
	switch {
	case a.status == http.StatusNotFound && p.deletion == perhapsDeleted:
		c.ledger.setDeletion(p, deleted)
	case a.status == http.StatusNotFound:
		c.ledger.addFinding(
			lost, p.key(), "its last acknowledgement was at %s, but the next read answered 404",
			p.at.Format(time.TimeOnly),
		)
		c.ledger.setDeletion(p, deleted)
	case a.verdict == acknowledged:
		o, _ := a.body[p.kind].(servertest.Object)
		for attribute, seen := range readValues(o) {
			if v := p.values[attribute]; !v.allows(seen) {
				c.ledger.addFinding(
					lost, p.key(),
					"%s was acknowledged as %q at %s (possible are also %q), but the next read showed %q",
					attribute, v.acknowledged, p.at.Format(time.TimeOnly), v.possible, seen,
				)
			}
		}
		n, _ := o["revision_number"].(float64)
		return int64(n)
	}
	return 0
}

// update writes one attribute, on the condition that the object still has the revision that a read has shown.
func (c *networkClient) update(ctx context.Context, p *promise, attribute, value string) {
	if p == nil {
		return
	}
	revision := c.checkVisible(ctx, p)
	if revision == 0 {
		return
	}
	c.ledger.changing(p, attribute, value)
	body := servertest.Object{map[string]string{"name": "name", "host": "binding:host_id"}[attribute]: value}
	a := c.send(ctx, http.MethodPut, path(p), servertest.Object{p.kind: body}, revision)
	switch a.verdict {
	case acknowledged:
		o, _ := a.body[p.kind].(servertest.Object)
		c.ledger.changed(p, readValues(o))
		c.checkVisible(ctx, p)
	case refused:
		c.ledger.notChanged(p, attribute, value)
	}
}

func (c *networkClient) delete(ctx context.Context, p *promise) {
	before := p.deletion
	c.ledger.setDeletion(p, perhapsDeleted)
	switch a := c.send(ctx, http.MethodDelete, path(p), nil, 0); {
	case a.verdict == acknowledged || a.status == http.StatusNotFound && before == perhapsDeleted:
		c.ledger.setDeletion(p, deleted)
		if got := c.send(ctx, http.MethodGet, path(p), nil, 0); got.verdict == acknowledged {
			c.ledger.addFinding(
				lost, p.key(), "its deletion was acknowledged at %s, but the next read shows it",
				p.at.Format(time.TimeOnly),
			)
		}
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
