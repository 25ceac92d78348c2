package agentstore

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/store/db"
)

// VirtualHost is a virtual host of RabbitMQ that only the agents of one host use, so a message in this
// virtual host certainly comes from the agents of this host.
type VirtualHost struct {
	ID         uuid.UUID
	Host       string   // of the agents
	Name       string   // in RabbitMQ
	AgentTypes []string // types of agents that the host may report; empty: all types
	CreatedAt  time.Time
}

const virtualHostColumns = `id, host, name, agent_types, created_at`

// AddVirtualHost registers a virtual host. AddVirtualHost returns db.ErrConflict if the host already has a
// virtual host, or if the virtual host belongs to another host.
func (s *Store) AddVirtualHost(
	ctx context.Context,
	host, name string,
	agentTypes []string,
) (VirtualHost, error) {
	if agentTypes == nil {
		agentTypes = []string{}
	}
	var v VirtualHost
	err := s.db.InTx(ctx, func(tx db.Tx) (err error) {
		v, err = db.QueryOne(ctx, tx, pgx.RowToStructByPos[VirtualHost], db.ErrConflict, `
			insert into agent_virtual_host (host, name, agent_types)
			values ($1, $2, $3)
			on conflict do nothing
			returning `+virtualHostColumns, host, name, agentTypes)
		tx.Changed(db.Change{Type: "agent_vhost", ID: v.ID.String()})
		return err
	})
	if err != nil {
		return VirtualHost{}, fmt.Errorf(
			"%w: the host %s already has a virtual host, or the virtual host %s belongs to another host",
			err, host, name,
		)
	}
	return v, nil
}

// VirtualHosts lists the virtual hosts of a host, or of all hosts if the parameter `host` is empty, ordered
// by host.
func (s *Store) VirtualHosts(ctx context.Context, host string) ([]VirtualHost, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[VirtualHost], `
		select `+virtualHostColumns+`
		from agent_virtual_host
		where $1 = '' or host = $1
		order by host`, host)
	if err != nil {
		return nil, fmt.Errorf("list the virtual hosts of agents: %w", err)
	}
	return all, nil
}

// RemoveVirtualHost deletes the registration of a virtual host and returns the host to which it belonged.
// From then on, berth answers no messages in this virtual host. RemoveVirtualHost returns db.ErrNotFound if
// the registration does not exist.
func (s *Store) RemoveVirtualHost(ctx context.Context, id uuid.UUID) (host string, err error) {
	err = s.db.InTx(ctx, func(tx db.Tx) error {
		return tx.QueryRow(ctx, `delete from agent_virtual_host where id = $1 returning host`, id).Scan(&host)
	})
	return host, db.NotFoundOr(err, "the virtual host %s of agents does not exist", id)
}
