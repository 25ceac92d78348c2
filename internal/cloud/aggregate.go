package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/aggregates"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"berth/internal/coalesce"
	"berth/internal/lease"
)

// nova makes those calls to Nova that both reservations of hosts and reservations of instances need.
type nova struct {
	client *gophercloud.ServiceClient
	lists  *coalesce.Group[map[string]aggregates.Aggregate]
	pools  *coalesce.Group[aggregates.Aggregate]
}

// aggregates lists all aggregates by name. Concurrent callers of aggregates share the returned map, so no
// caller may change the map.
func (n nova) aggregates(ctx context.Context) (map[string]aggregates.Aggregate, error) {
	return n.lists.Do(ctx, n.listAggregates)
}

func (n nova) listAggregates(ctx context.Context) (map[string]aggregates.Aggregate, error) {
	var list struct{ Aggregates []aggregate }
	if _, err := n.client.Get(ctx, n.client.ServiceURL("os-aggregates"), &list, nil); err != nil {
		return nil, fmt.Errorf("list aggregates: %w", err)
	}
	all := map[string]aggregates.Aggregate{}
	for _, a := range list.Aggregates {
		all[a.Name] = a.convert()
	}
	return all, nil
}

// aggregate holds the attributes of an aggregate that berth reads. aggregate replaces gophercloud's own type,
// because that type decodes each aggregate twice and there may be thousands of aggregates with thousands of
// hosts.
type aggregate struct {
	ID       int               `json:"id"`
	Name     string            `json:"name"`
	Hosts    []string          `json:"hosts"`
	Metadata map[string]string `json:"metadata"`
}

func (a aggregate) convert() aggregates.Aggregate {
	return aggregates.Aggregate{
		ID:       a.ID,
		Name:     a.Name,
		Hosts:    a.Hosts,
		Metadata: a.Metadata,
	}
}

// freepoolAggregate reads the freepool aggregate from Nova, if the aggregate exists. The parameter `all`
// contains the aggregates that the caller listed before; freepoolAggregate takes the ID of the freepool
// aggregate from it.
func (n nova) freepoolAggregate(
	ctx context.Context,
	all map[string]aggregates.Aggregate,
) (pool aggregates.Aggregate, is bool, err error) {
	if pool, is = all[freepool]; is {
		// a copy of the ID, because the shared call may still read it after this function has overwritten
		// `pool`
		id := strconv.Itoa(pool.ID)
		pool, err = n.pools.Do(ctx, func(ctx context.Context) (aggregates.Aggregate, error) {
			var one struct{ Aggregate aggregate }
			_, err := n.client.Get(ctx, n.client.ServiceURL("os-aggregates", id), &one, nil)
			return one.Aggregate.convert(), err
		})
		if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			return pool, err == nil, err
		}
	}
	all, err = n.aggregates(ctx)
	pool, is = all[freepool]
	return pool, is, err
}

// aggregate returns the aggregate with the given name. If the map `all`, which contains the aggregates that
// the caller listed before, lacks the aggregate, the function `aggregate` creates the aggregate.
func (n nova) aggregate(
	ctx context.Context,
	all map[string]aggregates.Aggregate,
	name, zone string,
	metadata map[string]any,
) (aggregates.Aggregate, error) {
	a, is := all[name]
	if !is {
		aggregate := aggregates.CreateOpts{Name: name, AvailabilityZone: zone}
		made, err := answered(aggregates.Create(ctx, n.client, aggregate).Extract())
		if err != nil {
			return a, fmt.Errorf("create aggregate %s: %w", name, err)
		}
		a = *made
	}
	missing := maps.Clone(metadata)
	maps.DeleteFunc(missing, func(key string, value any) bool { return a.Metadata[key] == value })
	if len(missing) == 0 {
		return a, nil
	}
	return a, n.setMetadata(ctx, a, missing)
}

func (n nova) setMetadata(ctx context.Context, a aggregates.Aggregate, metadata map[string]any) error {
	change := aggregates.SetMetadataOpts{Metadata: metadata}
	if _, err := aggregates.SetMetadata(ctx, n.client, a.ID, change).Extract(); err != nil {
		return fmt.Errorf("set the metadata of aggregate %s: %w", a.Name, err)
	}
	return nil
}

func (n nova) addHost(ctx context.Context, a aggregates.Aggregate, host string) error {
	if slices.Contains(a.Hosts, host) {
		return nil
	}
	if err := n.hostAction(ctx, a, "add_host", host); err != nil {
		return fmt.Errorf("add host %s to aggregate %s: %w", host, a.Name, err)
	}
	return nil
}

func (n nova) removeHost(ctx context.Context, a aggregates.Aggregate, host string) error {
	if err := ignoreNotFound(n.hostAction(ctx, a, "remove_host", host)); err != nil {
		return fmt.Errorf("remove host %s from aggregate %s: %w", host, a.Name, err)
	}
	return nil
}

// hostAction adds a host to an aggregate or removes a host from an aggregate. hostAction does not decode
// Nova's answer, which contains all hosts of the aggregate and may be large.
func (n nova) hostAction(ctx context.Context, a aggregates.Aggregate, action, host string) error {
	url := n.client.ServiceURL("os-aggregates", strconv.Itoa(a.ID), "action")
	body := map[string]any{action: map[string]string{"host": host}}
	_, err := n.client.Post(ctx, url, body, nil, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
	return err
}

// deleteAggregate deletes an aggregate without hosts.
func (n nova) deleteAggregate(ctx context.Context, a aggregates.Aggregate) error {
	if err := ignoreNotFound(aggregates.Delete(ctx, n.client, a.ID).ExtractErr()); err != nil {
		return fmt.Errorf("delete aggregate %s: %w", a.Name, err)
	}
	return nil
}

// hosts applies reservations of the type physical:host. Each reservation of physical:host gets an aggregate
// that contains the hosts of the reservation and has an availability zone of its own.
type hosts struct {
	nova
	cloud *Cloud
}

func (h hosts) apply(ctx context.Context, c lease.CloudReservation) (lease.CloudIDs, error) {
	all, err := h.aggregates(ctx)
	if err != nil {
		return lease.CloudIDs{}, err
	}
	own, err := h.aggregate(ctx, all, c.ID.String(),
		lease.ReservationZonePrefix+c.ID.String(), map[string]any{owner: c.Project})
	if err != nil {
		return lease.CloudIDs{}, err
	}
	id := int64(own.ID)
	mark := lease.CloudIDs{AggregateID: &id}
	var wanted, joined []string
	for _, s := range c.ComputeHosts {
		wanted = append(wanted, s.Service)
		if !slices.Contains(own.Hosts, s.Service) {
			joined = append(joined, s.Service)
		}
	}
	isWanted := func(host string) bool { return slices.Contains(wanted, host) }
	left := slices.DeleteFunc(slices.Clone(own.Hosts), isWanted)
	if len(own.Hosts) > 0 && len(joined)+len(left) > 0 {
		if err := h.cloud.checkRevision(ctx, c); err != nil {
			return mark, err
		}
	}
	if err := h.join(ctx, all, own, c, joined); err != nil {
		return mark, err
	}
	return mark, h.returnToPool(ctx, all, own, left)
}

// join moves hosts from the freepool into the reservation's aggregate, and deletes the servers on the hosts,
// except those that the reservation has on a former host that it has got back.
func (h hosts) join(
	ctx context.Context,
	all map[string]aggregates.Aggregate,
	own aggregates.Aggregate,
	c lease.CloudReservation,
	joined []string,
) error {
	if len(joined) == 0 {
		return nil
	}
	// the start of a lease does not wait until Nova has emptied its hosts
	resizes, err := h.resizesFrom(ctx, joined)
	if err == nil && len(resizes) > 0 {
		if err = h.checkJoining(ctx, own, joined...); err == nil {
			err = h.confirmResizes(ctx, resizes)
		}
	}
	if err != nil {
		return err
	}
	for _, host := range joined {
		back := c
		back.FormerHosts = slices.DeleteFunc(slices.Clone(c.FormerHosts),
			func(f lease.FormerHost) bool { return f.Service != host })
		kept, err := h.formerServers(ctx, back)
		if err != nil {
			return err
		}
		if err := h.moveFromPool(ctx, all, own, host, kept); err != nil {
			return err
		}
	}
	return h.removeFromPool(ctx, all, joined)
}

// checkJoining returns an error unless the hosts can still join the reservation's aggregate: another attempt
// may have added them already, or the reservation may have ended and the next one may have the hosts. The
// caller has listed the servers on the hosts before, so the listed ones belong to no running reservation.
func (h hosts) checkJoining(ctx context.Context, own aggregates.Aggregate, hosts ...string) error {
	all, err := h.aggregates(ctx)
	if err != nil {
		return err
	}
	now, is := all[own.Name]
	for _, host := range hosts {
		if other := otherReservation(all, own, host); other != "" {
			return fmt.Errorf("%w: host %s is in the aggregate of reservation %s", ErrInUse, host, other)
		}
		if !is || now.Metadata[owner] == endedOwner || slices.Contains(now.Hosts, host) {
			return fmt.Errorf("%w: host %s cannot join aggregate %s", errLateAttempt, host, own.Name)
		}
	}
	return nil
}

// moveFromPool moves a host from the freepool into the reservation's aggregate and deletes the servers on the
// host, except those in `kept`.
func (h hosts) moveFromPool(
	ctx context.Context,
	all map[string]aggregates.Aggregate,
	own aggregates.Aggregate,
	host string,
	kept []servers.Server,
) error {
	if other := otherReservation(all, own, host); other != "" {
		return fmt.Errorf("%w: host %s is in the aggregate of reservation %s", ErrInUse, host, other)
	}
	if err := h.removeFromFreepool(ctx, all, host); err != nil {
		return err
	}
	onHost, err := h.servers(ctx, serverFilter{Host: host, SoftDeleted: true})
	onHost = slices.DeleteFunc(onHost, func(s servers.Server) bool {
		return slices.ContainsFunc(kept, func(k servers.Server) bool { return k.ID == s.ID })
	})
	if err == nil && len(onHost) > 0 {
		err = h.checkJoining(ctx, own, host)
	}
	if err != nil {
		return err
	}
	if err := h.forceDelete(ctx, onHost); err != nil {
		return err
	}
	return h.addHost(ctx, own, host)
}

// endedOwner is the owner of the aggregate of a reservation that ends. No project has this ID, so that
// blazar-nova's BlazarFilter starts no more servers on the hosts of the aggregate. An aggregate without an
// owner would not keep other reservations off its hosts.
const endedOwner = "berth:ended"

// remove deletes the objects of the reservation. It also deletes the servers on the hosts of the
// reservation's aggregate, because another reservation can get these hosts next. On hosts outside the
// reservation's aggregate, remove deletes only the servers that formerServers returns.
func (h hosts) remove(ctx context.Context, c lease.CloudReservation) error {
	all, err := h.aggregates(ctx)
	if err != nil {
		return err
	}
	if own, is := all[c.ID.String()]; is {
		if own.Metadata[owner] != endedOwner {
			if err := h.setMetadata(ctx, own, map[string]any{owner: endedOwner}); err != nil {
				return err
			}
		}
		if err := h.releaseHosts(ctx, all, own); err != nil {
			return err
		}
		if err := h.deleteAggregate(ctx, own); err != nil {
			return err
		}
	}
	if err := h.poolStrayHosts(ctx, all, c); err != nil {
		return err
	}
	return h.deleteFormerServers(ctx, c)
}

// hostsPerStep is the number of hosts that releaseHosts empties before it moves them into the freepool. The
// hosts of a step share one list of Nova's migrations, which takes four requests. An attempt to end a lease
// has 90 seconds: eight requests that all time out after ten seconds leave time for the next step.
const hostsPerStep = 8

// releaseHosts deletes the servers on the hosts of a reservation's aggregate, and moves each host without
// servers into the freepool, a few hosts at a time. A host that Nova does not empty or move keeps no other
// host: releaseHosts continues, and returns the first of such errors in the end. A host that is also in the
// aggregate of another reservation belongs to that one: a late attempt to provision this reservation, which
// has ended, can have added it. releaseHosts deletes no servers on it and does not add it to the freepool.
func (h hosts) releaseHosts(
	ctx context.Context,
	all map[string]aggregates.Aggregate,
	own aggregates.Aggregate,
) error {
	findPool := sync.OnceValues(func() (aggregates.Aggregate, error) { return h.ensureFreepool(ctx, all) })
	var first error
	var mine []string
	for _, host := range own.Hosts {
		if otherReservation(all, own, host) == "" {
			mine = append(mine, host)
			continue
		}
		first = cmp.Or(first, h.removeHost(ctx, own, host))
	}
	for step := range slices.Chunk(mine, hostsPerStep) {
		left, err := h.emptyHosts(ctx, own, step)
		if err != nil {
			return err
		}
		for _, host := range step {
			if err := left[host]; err != nil {
				first = cmp.Or(first, err)
				continue
			}
			pool, err := findPool()
			if err != nil {
				return err
			}
			first = cmp.Or(first, h.moveToPool(ctx, pool, own, host))
		}
	}
	return first
}

// otherReservation returns the ID of a reservation whose aggregate contains the host, except the reservation
// of the aggregate `own`, or "" if there is none.
func otherReservation(all map[string]aggregates.Aggregate, own aggregates.Aggregate, host string) string {
	for _, a := range all {
		if a.Metadata[owner] != "" && a.Name != own.Name && slices.Contains(a.Hosts, host) {
			return a.Name
		}
	}
	return ""
}

// emptyHosts deletes the servers on hosts, and confirms the resizes of servers from these hosts. emptyHosts
// returns the hosts that Nova does not empty, each with an error. An error of one host, also a missing
// answer, may have its cause in this host alone, such as a very long list of servers. If Nova ignores the
// filter by host, or does not list migrations, emptyHosts can empty no host, and stops.
func (h hosts) emptyHosts(
	ctx context.Context,
	own aggregates.Aggregate,
	hosts []string,
) (map[string]error, error) {
	failed, onHosts := map[string]error{}, map[string][]servers.Server{}
	for _, host := range hosts {
		all, err := h.servers(ctx, serverFilter{Host: host, SoftDeleted: true})
		if errors.Is(err, errIgnoredFilter) {
			return nil, err
		}
		if failed[host] = err; len(all) > 0 {
			onHosts[host] = all
		}
	}
	// after the servers, so that a server that leaves its host meanwhile is on one of the lists
	resizes, err := h.resizesFrom(ctx, hosts)
	if err == nil && len(onHosts)+len(resizes) > 0 {
		err = h.checkReleasing(ctx, own, hosts)
	}
	if err != nil {
		return nil, err
	}
	for host, all := range onHosts {
		failed[host] = h.deleteListed(ctx, all, serverFilter{Host: host, SoftDeleted: true}, "host "+host)
	}
	left, err := h.finishResizes(ctx, hosts, resizes)
	if err != nil {
		return nil, err
	}
	for host, err := range left {
		failed[host] = cmp.Or(failed[host], err)
	}
	return failed, nil
}

// checkReleasing returns errLateAttempt unless all hosts are still in the reservation's aggregate, and in
// that of no other reservation. The caller has listed the servers on the hosts before, so the listed ones
// belong to no reservation that has the hosts next.
func (h hosts) checkReleasing(ctx context.Context, own aggregates.Aggregate, hosts []string) error {
	all, err := h.aggregates(ctx)
	if err != nil {
		return err
	}
	for _, host := range hosts {
		if !slices.Contains(all[own.Name].Hosts, host) || otherReservation(all, own, host) != "" {
			return fmt.Errorf("%w: host %s has left aggregate %s", errLateAttempt, host, own.Name)
		}
	}
	return nil
}

// poolStrayHosts adds a host of a reservation to the freepool if the host is neither in the freepool nor in
// the aggregate of a reservation. A host is in no aggregate if Provision was interrupted after it had removed
// the host from the freepool and before it added the host to the reservation's aggregate.
func (h hosts) poolStrayHosts(
	ctx context.Context,
	all map[string]aggregates.Aggregate,
	c lease.CloudReservation,
) error {
	for _, s := range c.ComputeHosts {
		elsewhere := false
		for _, a := range all {
			elsewhere = elsewhere ||
				(a.Name == freepool || a.Metadata[owner] != "") && slices.Contains(a.Hosts, s.Service)
		}
		if elsewhere {
			continue
		}
		if err := h.addToFreepool(ctx, s.Service); err != nil {
			return err
		}
	}
	return nil
}
