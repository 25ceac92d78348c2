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
// name the host, the flavor or the ID. The servers have only the ID, the name, the host and the flavor: with
// large metadata, a user could make the list larger than any limit, and so keep all servers.
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
		all[i] = servers.Server{ID: s.ID, Name: s.Name, Host: s.Host, Flavor: s.Flavor}
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

// requestServerDeletion deletes the servers that match the filter and returns their number. Nova may delete
// the servers after it has answered the request. The action forceDelete also deletes what the request DELETE
// would leave restorable: otherwise the owner of a server could restore it on a host that is then reserved
// for another project.
func (n nova) requestServerDeletion(ctx context.Context, filter serverFilter) (int, error) {
	filter.SoftDeleted = true
	all, err := n.servers(ctx, filter)
	if err != nil {
		return 0, err
	}
	for _, s := range all {
		if err := ignoreNotFound(servers.ForceDelete(ctx, n.client, safeurl.Segment(s.ID)).ExtractErr()); err != nil {
			return 0, fmt.Errorf("delete server %s: %w", s.ID, err)
		}
	}
	return len(all), nil
}

// deleteServers deletes the servers that match the filter, and returns ErrServersRemain while Nova still has
// some of these servers. deleteServers lists the servers a second time after its delete requests, because
// Nova has usually deleted most servers by then.
func (n nova) deleteServers(ctx context.Context, filter serverFilter, where string) error {
	asked, err := n.requestServerDeletion(ctx, filter)
	if err != nil || asked == 0 {
		return err
	}
	filter.SoftDeleted = true
	left, err := n.servers(ctx, filter)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%w: %d servers on %s", ErrServersRemain, len(left), where)
	}
	return err
}
