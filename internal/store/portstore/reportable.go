package portstore

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
)

// reportable says whether reports of the agents of a host can change an existing port.
type reportable struct {
	ID      uuid.UUID
	Changes bool
}

// reportablePorts reads which of the ports the reports of the agents of a host can change: the ports with a
// binding to the host or a block that waits for the host, distributed ports, and the ports on the networks of
// the host's DHCP agent. reportablePorts omits ports that do not exist. It locks nothing: a host knows the
// IDs of the ports of all projects, and its reports must not delay what happens to them.
func (s *Store) reportablePorts(ctx context.Context, host string, ids []uuid.UUID) ([]reportable, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowToStructByName[reportable], `
		select id, host = $2 or device_owner = $3
			or id in (select b.port_id from port_binding b where b.host = $2 and b.port_id = any($1))
			or id in (select b.object_id from block b where b.host = $2 and b.object_id = any($1))
			or network_id in (`+fmt.Sprintf(networkstore.NetworksOfDHCPHost, `array[$2]`)+`) as changes
		from port
		where id = any($1)`, ids, host, network.DeviceOwnerDistributed)
	if err != nil {
		return nil, fmt.Errorf("find the ports of the host %s: %w", host, err)
	}
	return all, nil
}

// onlyHost returns the host for which the senders of all the reports may act. The result `ok` is false if one
// of the senders may act for several hosts.
func onlyHost(reports []network.Report) (host string, ok bool) {
	for _, r := range reports {
		if !r.HostOnly || r.Host != reports[0].Host {
			return "", false
		}
		host = r.Host
	}
	return host, host != ""
}

// withoutForeign returns the IDs of the ports that the reports can change, and counts the reports about other
// ports. Ports that do not exist may be among them.
func (s *Store) withoutForeign(
	ctx context.Context,
	reports map[uuid.UUID][]network.Report,
) (ids []uuid.UUID, err error) {
	byHost := map[string][]uuid.UUID{}
	for id, about := range reports {
		if host, ok := onlyHost(about); ok {
			byHost[host] = append(byHost[host], id)
		} else {
			ids = append(ids, id)
		}
	}
	for host, named := range byHost {
		existing, err := s.reportablePorts(ctx, host, named)
		if err != nil {
			return nil, err
		}
		for _, p := range existing {
			if p.Changes {
				ids = append(ids, p.ID)
			} else {
				s.foreignReports.Add(int64(len(reports[p.ID])))
			}
		}
	}
	return ids, nil
}

// foreignView returns the answer to the reports of a host's agents about a port that they cannot change. The
// result `foreign` is false if they may be able to change the port.
func (s *Store) foreignView(
	ctx context.Context,
	id uuid.UUID,
	reports []network.Report,
) (view network.StatusView, foreign bool, err error) {
	host, ok := onlyHost(reports)
	if !ok {
		return view, false, nil
	}
	found, err := s.reportablePorts(ctx, host, []uuid.UUID{id})
	if err != nil || len(found) == 0 || found[0].Changes {
		return view, false, err
	}
	s.foreignReports.Add(int64(len(reports)))
	view.Accepted = make([]bool, len(reports))
	view.Stale = network.Port{}.StaleReports(reports, view.Accepted) // a port without a binding to the host
	return view, true, nil
}

// ForeignReports returns the number of reports, since the start of the process, of the agents of one host
// about ports that these agents cannot change.
func (s *Store) ForeignReports() int64 { return s.foreignReports.Load() }
