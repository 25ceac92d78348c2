package networkstore

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// notificationRetention is how long sent notifications are kept. An agent that was disconnected for longer than
// notificationRetention does not receive the notifications that it missed.
const notificationRetention = time.Hour

// MarkNotificationsSent marks notifications as sent. Sent notifications are kept for notificationRetention, so that they can be
// replayed.
func (s *Store) MarkNotificationsSent(ctx context.Context, ids []int64) error {
	if _, err := s.db.Exec(ctx, `update announcement set told_at = clock_timestamp() where id = any($1)`, ids); err != nil {
		return fmt.Errorf("mark notifications sent: %w", err)
	}
	return nil
}

// ReplayNotifications marks the notifications that were sent during the last `within` as unsent, because notifications may be
// lost when the broker or an agent's connection fails. Sending a notification again is safe, because each notification
// contains the current state of its object.
func (s *Store) ReplayNotifications(ctx context.Context, within time.Duration) error {
	return s.inTx(ctx, func(tx *transaction) error { return replayNotifications(ctx, tx, within) })
}

func replayNotifications(ctx context.Context, tx *transaction, within time.Duration) error {
	rows, err := tx.Query(ctx, `
		with replayed as (
			update announcement
			set told_at = null, claimed_until = null, at = clock_timestamp()
			where told_at > clock_timestamp() - $1::interval
			returning network_id)
		select distinct network_id
		from replayed
		order by network_id`, within)
	if err != nil {
		return fmt.Errorf("replay notifications: %w", err)
	}
	networks, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("replay notifications: %w", err)
	}
	nudges := make([]contract.Nudge, len(networks))
	for i, id := range networks {
		nudges[i] = notificationNudge(id)
	}
	return outbox.Enqueue(ctx, tx, nudges...)
}

// notificationNudge starts or nudges the workflow that publishes a network's notifications.
func notificationNudge(id uuid.UUID) contract.Nudge {
	return contract.Nudge{Workflow: contract.Announce, ID: contract.AnnounceID(id.String()), Summary: "agent notifications about network " + id.String(),
		Attributes: contract.Attributes{Resource: "announcement"}}
}

// TrimNotifications deletes at most `limit` notifications that are older than notificationRetention.
func (s *Store) TrimNotifications(ctx context.Context, limit int) (int64, error) {
	tag, err := s.db.Exec(ctx, `
		delete from announcement
		where id in (
			select id
			from announcement
			where told_at < clock_timestamp() - $1::interval
			limit $2
			for update skip locked)`, notificationRetention, limit)
	if err != nil {
		return 0, fmt.Errorf("trim notifications: %w", err)
	}
	return tag.RowsAffected(), nil
}

// RouterMAC returns the MAC that distributed routers on a host use. The first call of RouterMAC for a host chooses the MAC:
// RouterMAC calls `fresh` until `fresh` returns an unused MAC.
func (s *Store) RouterMAC(ctx context.Context, host string, fresh func() string) (network.DVRMAC, error) {
	m := network.DVRMAC{Host: host}
	err := s.inTx(ctx, func(tx *transaction) error {
		for {
			err := tx.QueryRow(ctx, `select mac::text from router_mac where host = $1`, host).Scan(&m.MAC)
			if err == nil || !db.NoRows(err) {
				return err
			}
			tag, err := tx.Exec(ctx, `insert into router_mac (host, mac) values ($1, $2) on conflict do nothing`, host, fresh())
			if err != nil {
				return fmt.Errorf("allocate router MAC of host %s: %w", host, err)
			}
			if tag.RowsAffected() == 0 {
				continue
			}
			if err := enqueueNotifications(ctx, tx, network.AgentNotification{Resource: network.ResourceDVRMAC, Event: network.EventCreated}); err != nil {
				return err
			}
		}
	})
	return m, err
}

// RouterMACs lists the router MACs of all hosts.
func (s *Store) RouterMACs(ctx context.Context) ([]network.DVRMAC, error) {
	rows, err := s.db.Query(ctx, `select host, mac::text as mac from router_mac order by host`)
	if err != nil {
		return nil, fmt.Errorf("list router MACs: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[network.DVRMAC])
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
