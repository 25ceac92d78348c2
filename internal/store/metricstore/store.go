// Package metricstore counts rows for the metrics of berth. The tables belong to other stores; package
// metricstore only reads them. Every query of package metricstore reads few rows: only objects that wait,
// undelivered messages, and agents.
package metricstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

// Store counts rows.
type Store struct{ db *db.DB }

// New returns a Store on a database.
func New(d *db.DB) *Store { return &Store{d} }

// BlockAges counts the blocks of ports and trunks for one entity by their age.
type BlockAges struct {
	Entity          string // DHCP, L2, or "other" for all other entities together
	UnderMinute     int64  // younger than a minute
	UnderTenMinutes int64  // from one minute to ten minutes
	Older           int64
	Oldest          time.Duration // age of the oldest block; 0: no block
}

// BlockAges counts the blocks of each entity. Only objects that wait have blocks, so the query reads few
// rows.
func (s *Store) BlockAges(ctx context.Context) ([]BlockAges, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[BlockAges], `
		select e.name, count(*) filter (where b.age < interval '1 minute'),
			count(*) filter (where b.age >= interval '1 minute' and b.age < interval '10 minutes'),
			count(*) filter (where b.age >= interval '10 minutes'), greatest(max(b.age), interval '0')
		from unnest($1::text[] || array['other']) as e (name)
		left join (
			select case when entity = any($1) then entity else 'other' end as entity, clock_timestamp() - since as age
			from block
		) b on b.entity = e.name
		group by e.name
		order by e.name`, []string{network.DHCP, network.L2})
	if err != nil {
		return nil, fmt.Errorf("count the provisioning blocks: %w", err)
	}
	return all, nil
}

// AgentCounts counts agents by state.
type AgentCounts struct{ Up, Down, Disabled int64 }

// CountAgents counts the agents by state. A disabled agent counts only as disabled.
func (s *Store) CountAgents(ctx context.Context) (AgentCounts, error) {
	counts, err := db.QueryOne(ctx, s.db, pgx.RowToStructByPos[AgentCounts], nil, `
		select count(*) filter (where admin_up and heartbeat_at >= clock_timestamp() - $1::interval),
			count(*) filter (where admin_up and heartbeat_at < clock_timestamp() - $1::interval),
			count(*) filter (where not admin_up)
		from agent`, network.AgentDownTime)
	if err != nil {
		return counts, fmt.Errorf("count the agents: %w", err)
	}
	return counts, nil
}

// Pending counts the recorded messages of one kind that are not delivered.
type Pending struct {
	Kind     string        // nova, agents, lease_webhook or provisioning_webhook
	Messages int64         // at most maxPending
	Oldest   time.Duration // age of the oldest message; 0: no message
}

// maxPending is the maximum number of messages that Pending counts, so that the query stays fast during a
// long outage.
const maxPending = 10_000

// Pending counts the recorded messages that are not delivered, by kind.
func (s *Store) Pending(ctx context.Context) ([]Pending, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[Pending], `
		select 'nova', count(*), coalesce(clock_timestamp() - min(at), interval '0')
		from (select created_at as at from nova_event order by id limit $1) n
		union all
		select 'agents', count(*), coalesce(clock_timestamp() - min(at), interval '0')
		from (select at from agent_notification where sent_at is null limit $1) a
		union all
		select 'lease_webhook', count(*), coalesce(clock_timestamp() - min(at), interval '0')
		from (select at from lease_notification order by id limit $1) l
		union all
		select 'provisioning_webhook', count(*), coalesce(clock_timestamp() - min(at), interval '0')
		from (select at from provisioning_notification order by id limit $1) p`, maxPending)
	if err != nil {
		return nil, fmt.Errorf("count the messages that are not delivered: %w", err)
	}
	return all, nil
}
