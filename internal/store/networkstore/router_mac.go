package networkstore

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

// RouterMAC returns the MAC that distributed routers on a host use. The first call to RouterMAC
// for a host chooses the MAC: RouterMAC calls `fresh` until `fresh` returns an unused MAC.
func (s *Store) RouterMAC(ctx context.Context, host string, fresh func() string) (network.DVRMAC, error) {
	m := network.DVRMAC{Host: host}
	err := s.inTx(ctx, func(tx *Transaction) error {
		for {
			err := tx.QueryRow(ctx, `select mac::text from router_mac where host = $1`, host).Scan(&m.MAC)
			if err == nil || !db.NoRows(err) {
				return err
			}
			tag, err := tx.Exec(
				ctx, `insert into router_mac (host, mac) values ($1, $2) on conflict do nothing`,
				host, fresh(),
			)
			if err != nil {
				return fmt.Errorf("allocate router MAC of host %s: %w", host, err)
			}
			if tag.RowsAffected() == 0 {
				continue
			}
			created := network.AgentNotification{Resource: network.ResourceDVRMAC, Event: network.EventCreated}
			if err := EnqueueNotifications(ctx, tx, created); err != nil {
				return err
			}
		}
	})
	return m, err
}

// RouterMACs lists the router MACs of all hosts.
func (s *Store) RouterMACs(ctx context.Context) ([]network.DVRMAC, error) {
	return db.QueryAll(ctx, s.db, pgx.RowToStructByName[network.DVRMAC],
		`select host, mac::text as mac from router_mac order by host`)
}

// DHCPAgentHosts reports whether a DHCP agent on the host hosts the network.
func (s *Store) DHCPAgentHosts(ctx context.Context, host string, id uuid.UUID) (hosted bool, err error) {
	err = s.db.QueryRow(ctx, `
		select exists (
			select
			from dhcp_binding d
			join agent a on a.id = d.agent_id
			where a.host = $1 and d.network_id = $2)`, host, id).Scan(&hosted)
	if err != nil {
		return false, fmt.Errorf("find DHCP agent of network %s: %w", id, err)
	}
	return hosted, nil
}
