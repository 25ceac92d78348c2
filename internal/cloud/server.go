package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"berth/internal/safeurl"
)

// errIgnoredFilter means that Nova has listed servers that do not match the filter.
var errIgnoredFilter = errors.New("the filter of the list is ignored, as Nova does for users without the role admin")

// serverFilter selects servers of all projects: those on a host, those with a flavor, or the one with an ID.
type serverFilter struct {
	Host   string `q:"host"`
	Flavor string `q:"flavor"`
	ID     string `q:"uuid"`
	// Limit is set by the method servers.
	Limit int `q:"limit"`
	// AllTenants is set by the method servers.
	AllTenants bool `q:"all_tenants"`
	// SoftDeleted adds the servers that Nova has only marked as deleted, because of its option
	// reclaim_instance_interval. Their owners can still restore them.
	SoftDeleted bool `q:"soft_deleted"`
}

// ToServerListQuery returns the query of the request that lists the servers.
func (f serverFilter) ToServerListQuery() (string, error) {
	q, err := gophercloud.BuildQueryString(f)
	return q.String(), err
}

// serversPerPage is the number of servers that berth asks for in one request. The metadata of a server can
// have about 400 kB, so that 50 servers are below maxAnswer.
const serversPerPage = 50

// servers lists the servers that match the filter. Nova ignores a filter that the policy of the caller does
// not allow, and berth deletes the servers of the list. So servers returns an error if one server does not
// name the host, the flavor or the ID. The servers have only the attributes that berth reads: with large
// metadata, a user could make the list larger than any limit, and so keep all servers.
func (n nova) servers(ctx context.Context, filter serverFilter) ([]servers.Server, error) {
	filter.AllTenants, filter.Limit = true, serversPerPage
	all, err := listLargePages(ctx, n.client, servers.List(n.client, filter), extractSmallServers)
	if err != nil {
		return nil, fmt.Errorf("list servers: %w", err)
	}
	for _, s := range all {
		if filter.Host != "" && !strings.EqualFold(s.Host, filter.Host) ||
			filter.Flavor != "" && s.Flavor["id"] != filter.Flavor ||
			filter.ID != "" && !strings.EqualFold(s.ID, filter.ID) {
			return nil, fmt.Errorf("list servers: %w: server %s has the host %q and the flavor %v",
				errIgnoredFilter, s.ID, s.Host, s.Flavor["id"])
		}
	}
	return all, nil
}

// extractSmallServers returns the servers of a page without their large attributes.
func extractSmallServers(page pagination.Page) ([]servers.Server, error) {
	all, err := servers.ExtractServers(page)
	for i, s := range all {
		all[i] = servers.Server{
			ID:       s.ID,
			Name:     s.Name,
			Host:     s.Host,
			Flavor:   s.Flavor,
			TenantID: s.TenantID,
			Created:  s.Created,
		}
	}
	return all, err
}

// hasServer reports whether Nova has the server with an ID, of whatever project. Nova also answers 404 for a
// server that berth's user may not see, but refuses to list the servers of all projects for such a user. A
// list without the server is not enough, because it lacks the servers of cells that do not answer.
func (n nova) hasServer(ctx context.Context, id string) (bool, error) {
	err := servers.Get(ctx, n.client, safeurl.Segment(id)).Err
	if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return err == nil, err
	}
	found, err := n.servers(ctx, serverFilter{ID: id, SoftDeleted: true})
	return len(found) > 0, err
}

// forceDelete deletes servers. Nova may delete them after it has answered the requests; if their host is
// down, Nova deletes them at once. The action forceDelete also deletes what the request DELETE would leave
// restorable: otherwise the owner of a server could restore it on a host that is then reserved for another
// project.
func (n nova) forceDelete(ctx context.Context, all []servers.Server) error {
	for _, s := range all {
		if err := ignoreNotFound(servers.ForceDelete(ctx, n.client, safeurl.Segment(s.ID)).ExtractErr()); err != nil {
			return fmt.Errorf("delete server %s: %w", s.ID, err)
		}
	}
	return nil
}

// deleteServers deletes the servers that match the filter, and returns ErrServersRemain while Nova still has
// some of these servers.
func (n nova) deleteServers(ctx context.Context, filter serverFilter, where string) error {
	filter.SoftDeleted = true
	all, err := n.servers(ctx, filter)
	if err != nil {
		return err
	}
	return n.deleteListed(ctx, all, filter, where)
}

// deleteListed deletes the servers that the caller has listed with the filter, and returns ErrServersRemain
// while Nova has some. deleteListed lists the servers a second time after its delete requests, because Nova
// has usually deleted most servers by then.
func (n nova) deleteListed(
	ctx context.Context,
	all []servers.Server,
	filter serverFilter,
	where string,
) error {
	if err := n.forceDelete(ctx, all); err != nil || len(all) == 0 {
		return err
	}
	left, err := n.servers(ctx, filter)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%w: %d servers on %s", ErrServersRemain, len(left), where)
	}
	return err
}
