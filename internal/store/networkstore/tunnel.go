package networkstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

// SyncTunnel stores a tunnel endpoint and lists all endpoints of the same tunnel type. If the host of the new
// endpoint already has an endpoint with another address, SyncTunnel deletes the old endpoint. If another host
// has an endpoint with the address of the new endpoint, SyncTunnel assigns the address to the host of the new
// endpoint; with `ownerOnly`, SyncTunnel instead changes nothing and returns db.ErrConflict, unless the other
// host has no agent any more.
//
// SyncTunnel notifies the agents of all hosts only if the endpoint is new or changed. Neutron notifies them
// each time; but an agent reads all endpoints when it starts, and berth repeats notifications that agents may
// have missed.
func (s *Store) SyncTunnel(
	ctx context.Context,
	end network.TunnelEndpoint,
	ownerOnly bool,
) ([]network.TunnelEndpoint, error) {
	var all []network.TunnelEndpoint
	err := s.inTx(ctx, func(tx *Transaction) error {
		replaced, err := db.QueryAll(ctx, tx, pgx.RowToStructByName[network.TunnelEndpoint], `
			delete from tunnel_end
			where type = $1 and host = $2 and host <> '' and ip <> $3
			returning type, host, ip`, end.Type, end.Host, end.IP)
		if err != nil {
			return fmt.Errorf("store tunnel endpoint of %s: %w", end.Host, err)
		}
		var owner string
		var changed bool
		if err := tx.QueryRow(ctx, `
			with before as (
				select host
				from tunnel_end
				where type = $1 and ip = $3)
			insert into tunnel_end (type, host, ip)
			values ($1, $2, $3)
			on conflict (type, ip) do update
			set host = case when $4 and exists (select from agent a where a.host = tunnel_end.host) then tunnel_end.host else excluded.host end
			returning host, host is distinct from (select host from before)`, end.Type, end.Host, end.IP, ownerOnly).Scan(&owner, &changed); err != nil {
			return fmt.Errorf("store tunnel endpoint of %s: %w", end.Host, err)
		}
		if owner != end.Host {
			return fmt.Errorf(
				"%w: the address %s is the tunnel endpoint of the host %s, whose agents still exist",
				db.ErrConflict, end.IP, owner,
			)
		}
		if all, err = tunnelEnds(ctx, tx, end.Type); err != nil || !changed {
			return err
		}
		var notifications []network.AgentNotification
		for _, old := range replaced {
			notifications = append(notifications, network.AgentNotification{
				Resource: network.ResourceTunnel,
				Event:    network.EventDeleted,
				Data:     db.EncodeJSON(old),
			})
		}
		return EnqueueNotifications(
			ctx,
			tx,
			append(notifications, network.AgentNotification{
				Resource: network.ResourceTunnel,
				Event:    network.EventUpdated,
				Data:     db.EncodeJSON(end),
			})...)
	})
	return all, err
}

// TunnelEnds lists the tunnel endpoints of a type.
func (s *Store) TunnelEnds(ctx context.Context, kind string) ([]network.TunnelEndpoint, error) {
	return tunnelEnds(ctx, s.db, kind)
}

func tunnelEnds(ctx context.Context, q db.Querier, kind string) ([]network.TunnelEndpoint, error) {
	ends, err := db.QueryAll(ctx, q, pgx.RowToStructByName[network.TunnelEndpoint], `
		select type, host, ip
		from tunnel_end
		where type = $1
		order by ip`, kind)
	if err != nil {
		return nil, fmt.Errorf("list tunnel endpoints: %w", err)
	}
	return ends, nil
}
