package cloud

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"berth/internal/lease"
)

// formerServers returns the servers of a reservation of hosts on the hosts that healing has replaced. Such a
// host can be down only for a while, and its servers run on when it is up again. If the servers of a host
// cannot be listed, formerServers returns the other ones and the first error.
//
// A former host can be free, or be one of another reservation. A server on it is one of the reservation if
// all of these are true:
//
//   - The server belongs to the project of the lease, and Nova created it before the host was replaced. The
//     start of the reservation has deleted all servers on the host, and then only this project could start
//     servers there, until healing replaced the host. A server that any later reservation started on the host
//     is younger, also if the later reservation is of the same project.
//   - The host is not in the aggregate of a reservation of hosts: the start of that reservation has deleted
//     all servers on the host, so an older server has moved there since.
//   - The flavor of the server is not the one of a reservation of instances, whose servers an administrator
//     can have moved to the host.
//
// The clocks of Nova and PostgreSQL may differ by seconds. This is harmless, because Nova starts no servers
// on the host while it is down, and none while it is free.
func (h hosts) formerServers(
	ctx context.Context,
	c lease.CloudReservation,
) (found []servers.Server, err error) {
	for _, former := range c.FormerHosts {
		all, failed := h.olderServers(ctx, c, former)
		found, err = append(found, all...), cmp.Or(err, failed)
	}
	if len(found) == 0 {
		return nil, err
	}
	// after the servers, so that no listed server belongs to a reservation that starts meanwhile
	aggregates, failed := h.aggregates(ctx)
	if failed != nil {
		return nil, cmp.Or(err, failed)
	}
	return slices.DeleteFunc(found, func(s servers.Server) bool {
		flavor, _ := s.Flavor["id"].(string)
		return exclusiveOwner(aggregates, s.Host) != "" || aggregates[flavor].Metadata[owner] != ""
	}), err
}

// olderServers returns the servers of the project of a reservation on a former host that Nova created before
// the host was replaced.
func (h hosts) olderServers(
	ctx context.Context,
	c lease.CloudReservation,
	former lease.FormerHost,
) (found []servers.Server, err error) {
	all, err := h.servers(ctx, serverFilter{Host: former.Service, SoftDeleted: true})
	for _, s := range all {
		if s.TenantID == c.Project && !s.Created.IsZero() && s.Created.Before(former.LeftAt) {
			s.Host = former.Service // Nova ignores the case of the name
			found = append(found, s)
		}
	}
	return found, err
}

// EmptyFormerHosts returns those former hosts of a reservation of hosts on which Nova has no server that can
// be one of the reservation. If the servers of a host cannot be listed, EmptyFormerHosts returns the other
// ones and the first error.
func (c *Cloud) EmptyFormerHosts(
	ctx context.Context,
	claim lease.CloudReservation,
) (empty []lease.FormerHost, err error) {
	if !c.Supports(lease.PhysicalHost) {
		return nil, nil
	}
	for _, former := range claim.FormerHosts {
		found, failed := c.hosts.olderServers(ctx, claim, former)
		if err = cmp.Or(err, failed); failed == nil && len(found) == 0 {
			empty = append(empty, former)
		}
	}
	return empty, withClaim("look for servers on former hosts of", claim, err)
}

// deleteFormerServers deletes the servers of a reservation of hosts on its former hosts. While Nova has some
// of them, deleteFormerServers returns lease.ErrFormerHosts.
func (h hosts) deleteFormerServers(ctx context.Context, c lease.CloudReservation) error {
	found, err := h.formerServers(ctx, c)
	for _, s := range found {
		err = cmp.Or(err, h.forceDelete(ctx, []servers.Server{s}))
	}
	if len(found) > 0 {
		left, failed := h.formerServers(ctx, c)
		if failed == nil && len(left) > 0 {
			failed = fmt.Errorf("%w: %d servers, such as server %s on host %s",
				ErrServersRemain, len(left), left[0].ID, left[0].Host)
		}
		err = cmp.Or(err, failed)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", lease.ErrFormerHosts, err)
	}
	return nil
}
