package networkstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

// SyncTunnel takes an agent's end of the tunnels of a type and lists all of them. A host that comes with another
// address has left its old one, and an address that comes with another host its old host.
func (s *Store) SyncTunnel(ctx context.Context, end network.TunnelEndpoint) ([]network.TunnelEndpoint, error) {
	var all []network.TunnelEndpoint
	err := s.inTx(ctx, func(tx *transaction) error {
		left, err := db.QueryAll(ctx, tx, pgx.RowToStructByPos[network.TunnelEndpoint], `
			delete from tunnel_end
			where type = $1 and host = $2 and host <> '' and ip <> $3
			returning type, host, ip`, end.Type, end.Host, end.IP)
		if err != nil {
			return fmt.Errorf("tunnel of %s: %w", end.Host, err)
		}
		if _, err := tx.Exec(ctx, `
			insert into tunnel_end (type, host, ip)
			values ($1, $2, $3)
			on conflict (type, ip) do update
			set host = excluded.host
			where tunnel_end.host <> excluded.host`, end.Type, end.Host, end.IP); err != nil {
			return fmt.Errorf("tunnel of %s: %w", end.Host, err)
		}
		rows, err := tx.Query(ctx, `
			select type, host, ip
			from tunnel_end
			where type = $1
			order by ip`, end.Type)
		if err != nil {
			return fmt.Errorf("list tunnels: %w", err)
		}
		if all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[network.TunnelEndpoint]); err != nil {
			return err
		}
		var news []network.AgentNotification
		for _, old := range left {
			news = append(news, network.AgentNotification{Resource: network.ResourceTunnel, Event: network.EventDeleted, Data: encoded(old)})
		}
		return announce(ctx, tx, append(news, network.AgentNotification{Resource: network.ResourceTunnel, Event: network.EventUpdated, Data: encoded(end)})...)
	})
	return all, err
}

// TunnelEnds lists the ends of the tunnels of a type.
func (s *Store) TunnelEnds(ctx context.Context, kind string) ([]network.TunnelEndpoint, error) {
	ends, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[network.TunnelEndpoint], `
		select type, host, ip
		from tunnel_end
		where type = $1
		order by ip`, kind)
	if err != nil {
		return nil, fmt.Errorf("list tunnels: %w", err)
	}
	return ends, nil
}
