package networkstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

// AvailabilityZones lists the availability zones that DHCP agents and L3 agents report, ordered by name.
func (s *Store) AvailabilityZones(ctx context.Context) ([]network.AvailabilityZone, error) {
	rows, err := s.db.Query(ctx, `
		select availability_zone as name, case agent_type when $1 then 'network' else 'router' end as resource, bool_or(admin_up) as available
		from agent
		where availability_zone <> '' and agent_type in ($1, $2)
		group by availability_zone, agent_type
		order by name, resource`, network.DHCPAgent, network.L3Agent)
	if err != nil {
		return nil, fmt.Errorf("list availability zones: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[network.AvailabilityZone])
}

// checkZones fails if one of the given availability zones is reported by no DHCP agent.
func checkZones(ctx context.Context, tx *Transaction, zones []string) error {
	var missing string
	err := tx.QueryRow(ctx, `
		select zone
		from unnest($1::text[]) with ordinality as hint (zone, place)
		where not exists (select from agent where agent_type = $2 and availability_zone = zone)
		order by place`, zones, network.DHCPAgent).Scan(&missing)
	switch {
	case db.NoRows(err):
		return nil
	case err != nil:
		return fmt.Errorf("find availability zones: %w", err)
	default:
		return network.ZoneNotFound(missing)
	}
}

// mayHost returns the SQL condition that a DHCP agent is in one of the availability zones that a network
// requests, or in one of the default zones if the network requests none. If no default zones are configured
// either, the agent may be in any zone. The parameters are the SQL aliases of the agent and of the network,
// and the SQL parameter with the default zones.
func mayHost(agent, net, defaults string) string {
	zones := fmt.Sprintf(`coalesce(nullif(%s.availability_zone_hints, '{}'), %s::text[], '{}')`,
		net, defaults)
	return fmt.Sprintf(`(%[2]s = '{}' or %[1]s.availability_zone = any(%[2]s))`, agent, zones)
}
