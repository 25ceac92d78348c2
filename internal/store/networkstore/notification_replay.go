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

// toldFor is how long is known what agents were told: an agent that was away for longer is told it nevermore.
const toldFor = time.Hour

// SettleAnnouncements takes down that agents were told. It is known for a while: see Retell.
func (s *Store) SettleAnnouncements(ctx context.Context, ids []int64) error {
	if _, err := s.db.Exec(ctx, `update announcement set told_at = clock_timestamp() where id = any($1)`, ids); err != nil {
		return fmt.Errorf("settle announcements: %w", err)
	}
	return nil
}

// Retell has agents told again what they were told in the time before now, because somebody may have lost it: a broker that died, or an
// agent that was not connected with it. Of what lives, agents are told how it is now, so that once more does no harm.
func (s *Store) Retell(ctx context.Context, within time.Duration) error {
	return s.inTx(ctx, func(tx *transaction) error { return retell(ctx, tx, within) })
}

func retell(ctx context.Context, tx *transaction, within time.Duration) error {
	rows, err := tx.Query(ctx, `
		with again as (
			update announcement
			set told_at = null, at = clock_timestamp()
			where told_at > clock_timestamp() - $1::interval
			returning network_id)
		select distinct network_id
		from again
		order by network_id`, within)
	if err != nil {
		return fmt.Errorf("tell agents again: %w", err)
	}
	networks, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("tell agents again: %w", err)
	}
	nudges := make([]contract.Nudge, len(networks))
	for i, id := range networks {
		nudges[i] = announcementNudge(id)
	}
	return outbox.Enqueue(ctx, tx, nudges...)
}

func announcementNudge(id uuid.UUID) contract.Nudge {
	return contract.Nudge{Workflow: contract.Announce, ID: contract.AnnounceID(id.String()), Summary: "what agents are told of network " + id.String(),
		Attributes: contract.Attributes{Resource: "announcement"}}
}

// TrimAnnouncements forgets what agents were told long ago, at most so many.
func (s *Store) TrimAnnouncements(ctx context.Context, limit int) (int64, error) {
	tag, err := s.db.Exec(ctx, `
		delete from announcement
		where id in (
			select id
			from announcement
			where told_at < clock_timestamp() - $1::interval
			limit $2
			for update skip locked)`, toldFor, limit)
	if err != nil {
		return 0, fmt.Errorf("forget what agents were told: %w", err)
	}
	return tag.RowsAffected(), nil
}

// RouterMAC is the MAC under which distributed routers on a host send, which is chosen when it is first asked for; fresh proposes one, and
// another when that is taken.
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
				return fmt.Errorf("MAC of the routers on %s: %w", host, err)
			}
			if tag.RowsAffected() == 0 {
				continue
			}
			if err := announce(ctx, tx, network.AgentNotification{Resource: network.ResourceDVRMAC, Event: network.EventCreated}); err != nil {
				return err
			}
		}
	})
	return m, err
}

// RouterMACs lists those of all hosts.
func (s *Store) RouterMACs(ctx context.Context) ([]network.DVRMAC, error) {
	rows, err := s.db.Query(ctx, `select host, mac::text from router_mac order by host`)
	if err != nil {
		return nil, fmt.Errorf("list MACs of routers: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[network.DVRMAC])
}

// Serves tells whether a DHCP agent on that host serves the network.
func (s *Store) Serves(ctx context.Context, host string, id uuid.UUID) (there bool, err error) {
	err = s.db.QueryRow(ctx, `
		select exists (
			select
			from dhcp_binding d
			join agent a on a.id = d.agent_id
			where a.host = $1 and d.network_id = $2)`, host, id).Scan(&there)
	if err != nil {
		return false, fmt.Errorf("who serves network %s: %w", id, err)
	}
	return there, nil
}
