package leasestore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/inventorystore"
)

// Host returns the reservable host with the given ID. Host returns db.ErrNotFound if no reservable host has
// the ID.
func (s *Store) Host(ctx context.Context, id int64) (lease.Host, error) {
	all, err := s.hostsWithQuarantine(ctx, `h.id = $1`, id)
	if err == nil && len(all) == 0 {
		err = hostNotFound(id)
	}
	if err != nil {
		return lease.Host{}, err
	}
	return all[0], nil
}

// Hosts returns all reservable hosts, sorted by ID.
func (s *Store) Hosts(ctx context.Context) ([]lease.Host, error) {
	return s.hostsWithQuarantine(ctx, `true`)
}

// HostPage returns at most `limit` reservable hosts whose ID is greater than `after`, sorted by ID.
func (s *Store) HostPage(ctx context.Context, after int64, limit int) ([]lease.Host, error) {
	return s.hostsWithQuarantine(ctx,
		`h.id in (select id from host where id > $1 order by id limit $2)`, after, limit)
}

// hostsWithQuarantine reads hosts. For each host that a lease keeps because the end of the lease has failed,
// it also reads this lease.
func (s *Store) hostsWithQuarantine(ctx context.Context, where string, args ...any) ([]lease.Host, error) {
	all, err := readHosts(ctx, s.db, where, args...)
	if err != nil {
		return nil, err
	}
	quarantined, err := s.quarantinedHosts(ctx)
	for i := range all {
		all[i].Quarantine = quarantined[all[i].ID]
	}
	return all, err
}

// quarantineSQL selects each host that a lease keeps because the end of the lease has failed, together with
// the lease and the reservation.
const quarantineSQL = `
	select a.host_id, a.reservation_id, r.lease_id
	from event e
	join reservation r on r.lease_id = e.lease_id
	join host_allocation a on a.reservation_id = r.id
	where e.event_type = 'end_lease' and e.status = 'ERROR'`

// quarantinedHosts returns, by host ID, the leases that keep a host because the end of the lease has failed.
// If several leases keep the same host, quarantinedHosts returns the lease with the earliest end.
func (s *Store) quarantinedHosts(ctx context.Context) (map[int64]*lease.Quarantine, error) {
	rows, err := s.db.Query(ctx, `
		select distinct on (a.host_id) a.host_id, l.id, l.name, l.end_at, f.party, f.call, f.error, f.since, f.last_at, f.next_at, f.attempts
		from (`+quarantineSQL+`) as a
		join lease l on l.id = a.lease_id
		left join reservation_failure f on f.reservation_id = a.reservation_id
		order by a.host_id, l.end_at, l.id`)
	if err != nil {
		return nil, fmt.Errorf("read quarantined hosts: %w", err)
	}
	all := map[int64]*lease.Quarantine{}
	for rows.Next() {
		var host int64
		var q lease.Quarantine
		var party, call, text *string
		var since, last, next *time.Time
		var attempts *int
		if err := rows.Scan(&host, &q.Lease, &q.Name, &q.Since, &party, &call, &text, &since, &last, &next, &attempts); err != nil {
			return nil, fmt.Errorf("read quarantined hosts: %w", err)
		}
		if party != nil {
			q.Failure = &lease.CallFailure{
				Party:    *party,
				Call:     *call,
				Error:    *text,
				Since:    *since,
				LastAt:   *last,
				NextAt:   next,
				Attempts: *attempts,
			}
		}
		all[host] = &q
	}
	return all, rows.Err()
}

// UpdateHost adds capabilities to a host or changes their values. If a reservation of the host requires a
// capability, UpdateHost does not change the value of this capability, but returns a *lease.Fault.
func (s *Store) UpdateHost(
	ctx context.Context,
	id int64,
	capabilities map[string]string,
) (h lease.Host, err error) {
	if err := lease.CheckCapabilities(capabilities); err != nil {
		return h, err
	}
	err = s.inTx(ctx, func(tx *transaction) error {
		was, err := lockHost(ctx, tx, id)
		if err != nil {
			return err
		}
		needed, err := readRequiredProperties(ctx, tx, id)
		if err != nil {
			return err
		}
		for key, value := range capabilities {
			if old, has := was.Capabilities[key]; has && old != value && slices.Contains(needed, key) {
				return lease.Faultf(lease.HostInUse,
					"Capability %s of host %d cannot change: a reservation requires it.", key, id)
			}
		}
		if err := setCapabilities(ctx, tx, id, capabilities); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update host set updated_at = clock_timestamp() where id = $1`, id); err != nil {
			return fmt.Errorf("update host %d: %w", id, err)
		}
		h, err = readHost(ctx, tx, id)
		return err
	})
	return h, err
}

// DeleteHost makes a host no longer reservable. DeleteHost returns a *lease.Fault if the host is allocated to
// a current or future reservation, or if consumers have allocations from the host's providers in Placement.
func (s *Store) DeleteHost(ctx context.Context, id int64) error {
	return s.inTx(ctx, func(tx *transaction) error {
		h, err := lockHost(ctx, tx, id)
		if err != nil {
			return err
		}
		var used bool
		// the hypervisor's provider may be deleted in Placement
		if err := tx.QueryRow(ctx, `select `+treeUsedSQL+` from provider p where p.uuid = $1`, h.Provider.String()).Scan(&used); err != nil &&
			!errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read allocations on host %d: %w", id, err)
		}
		if used {
			return lease.Faultf(lease.HostInUse,
				"Servers or other consumers hold resources of host %s; it cannot be deleted.",
				h.Hostname)
		}
		_, err = tx.Exec(ctx, `delete from host where id = $1`, id)
		if db.Violates(err, "host_allocation_host") {
			return lease.Faultf(lease.HostInUse, "Host %s is reserved and cannot be deleted.", h.Hostname)
		}
		if err != nil {
			return fmt.Errorf("delete host %d: %w", id, err)
		}
		var problem *inventory.Fault
		if err := inventorystore.DropProvider(ctx, tx, h.NestedProvider.String()); errors.As(err, &problem) {
			return lease.Faultf(lease.HostInUse, "Host %s cannot be deleted: %s", h.Hostname, problem.Message)
		} else if err != nil {
			return err
		}
		return s.enqueuePoolUpdate(ctx, tx, h.ServiceName)
	})
}

func hostNotFound(id int64) error { return fmt.Errorf("%w: host %d", db.ErrNotFound, id) }

func setCapabilities(ctx context.Context, tx *transaction, id int64, capabilities map[string]string) error {
	batch := &pgx.Batch{}
	for _, key := range slices.Sorted(maps.Keys(capabilities)) {
		batch.Queue(`
			insert into host_property (id, name)
			values ($1, $2)
			on conflict (name) do nothing`, uuid.New(), key)
		batch.Queue(`
			insert into host_capability (host_id, property_id, value)
			select $1, id, $3
			from host_property
			where name = $2
			on conflict (host_id, property_id) do update
			set value = excluded.value`, id, key, capabilities[key])
	}
	if batch.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("set capabilities of host %d: %w", id, err)
	}
	return nil
}

// lockHost locks the row of a host and reads the host. Until the caller's transaction ends, no other
// transaction can allocate a host that lockHost has locked.
func lockHost(ctx context.Context, tx *transaction, id int64) (lease.Host, error) {
	err := tx.QueryRow(ctx, `select id from host where id = $1 for update`, id).Scan(&id)
	if err := db.NotFoundOr(err, "host %d", id); err != nil {
		return lease.Host{}, err
	}
	return readHost(ctx, tx, id)
}

func readHost(ctx context.Context, tx *transaction, id int64) (lease.Host, error) {
	all, err := readHosts(ctx, tx, `h.id = $1`, id)
	if err == nil && len(all) == 0 {
		err = hostNotFound(id)
	}
	if err != nil {
		return lease.Host{}, err
	}
	return all[0], nil
}

// readRequiredProperties returns the names of the host properties that the reservations of a host require.
func readRequiredProperties(ctx context.Context, tx *transaction, id int64) ([]string, error) {
	var needed []string
	var hypervisor, resource string
	rows, err := tx.Query(ctx, `
		select r.hypervisor_properties, r.resource_properties
		from host_allocation a
		join reservation r on r.id = a.reservation_id
		where a.host_id = $1`, id)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&hypervisor, &resource}, func() error {
			all, err := lease.HostRequirements(hypervisor, resource)
			for _, r := range all {
				needed = append(needed, r.Key)
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read required properties of host %d: %w", id, err)
	}
	return needed, nil
}

// hostColumns are the columns of a SQL query that scanHost reads.
const hostColumns = `
			h.id, h.hostname, h.provider, h.nested, h.service_name, h.hypervisor_type, h.hypervisor_version, h.vcpus,
			h.memory_mb, h.local_gb, h.cpu_info, h.availability_zone, h.reservable, h.created_at, h.updated_at,
			coalesce((
				select jsonb_object_agg(p.name, c.value)
				from host_capability c
				join host_property p on p.id = c.property_id
				where c.host_id = h.id), '{}')`

func readHosts(ctx context.Context, q db.Querier, where string, args ...any) ([]lease.Host, error) {
	all, err := db.QueryAll(ctx, q, func(row pgx.CollectableRow) (lease.Host, error) { return scanHost(row) }, `
		select `+hostColumns+`
		from host h
		where `+where+`
		order by h.id`, args...)
	if err != nil {
		return nil, fmt.Errorf("read hosts: %w", err)
	}
	return all, nil
}

// scanHost reads the columns hostColumns of a row into a host, and the columns after hostColumns into the
// pointers in `more`.
func scanHost(row pgx.CollectableRow, more ...any) (h lease.Host, err error) {
	err = row.Scan(
		append(
			[]any{
				&h.ID,
				&h.Hostname,
				&h.Provider,
				&h.NestedProvider,
				&h.ServiceName,
				&h.HypervisorType,
				&h.HypervisorVersion,
				&h.VCPUs,
				&h.MemoryMB,
				&h.LocalGB,
				&h.CPUInfo,
				&h.AvailabilityZone,
				&h.Reservable,
				&h.CreatedAt,
				&h.UpdatedAt,
				&h.Capabilities,
			},
			more...)...)
	return h, err
}
