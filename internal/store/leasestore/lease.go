package leasestore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/contract"
	"berth/internal/lease"
	"berth/internal/store/db"
)

// Lease returns the lease with the given ID. Lease returns db.ErrNotFound if the lease does not exist or is
// deleted.
func (s *Store) Lease(ctx context.Context, id uuid.UUID) (lease.Lease, error) {
	all, err := s.leases(ctx, `id = $1`, id)
	if err != nil {
		return lease.Lease{}, err
	}
	if len(all) == 0 {
		return lease.Lease{}, leaseNotFound(id)
	}
	return all[0], nil
}

// LeaseExists reports whether the lease exists. It reads nothing else of the lease.
func (s *Store) LeaseExists(ctx context.Context, id uuid.UUID) (exists bool, err error) {
	err = s.db.QueryRow(ctx, `select exists (select from lease where id = $1)`, id).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("look for lease %s: %w", id, err)
	}
	return exists, nil
}

// LeasesByID returns the leases with the given IDs. The result of LeasesByID does not contain deleted leases.
func (s *Store) LeasesByID(ctx context.Context, ids []uuid.UUID) ([]lease.Lease, error) {
	return s.leases(ctx, `id = any($1)`, ids)
}

// LeaseProjects returns the projects of the leases with the given IDs.
func (s *Store) LeaseProjects(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]string, error) {
	rows, err := s.db.Query(ctx, `select id, project_id from lease where id = any($1)`, ids)
	projects := map[uuid.UUID]string{}
	var id uuid.UUID
	var project string
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&id, &project}, func() error { projects[id] = project; return nil })
	}
	if err != nil {
		return nil, fmt.Errorf("read the projects of leases: %w", err)
	}
	return projects, nil
}

// pageBytes is the maximum size of the texts of the leases on a page that has several leases.
const pageBytes = 256 << 10

// leaseSizeSQL estimates the memory that a row of the table lease needs with its reservations and events, in
// bytes.
const leaseSizeSQL = `1000 + (
	select coalesce(sum(1000 + octet_length(hypervisor_properties) + octet_length(resource_properties) + octet_length(network_properties)
		+ octet_length(network_description) + octet_length(coalesce(flavor::text, '')) + 50 * cardinality(required_addresses)), 0)
	from reservation r
	where r.lease_id = lease.id)::bigint`

// Leases returns a page of the leases that match the filter, oldest first. The page ends before f.Limit if
// its leases are large. The result `last` is true if no page follows.
func (s *Store) Leases(ctx context.Context, f lease.Filter) (page []lease.Lease, last bool, err error) {
	where, args := `(created_at, id) > ($1, $2)`, []any{f.After.CreatedAt, f.After.ID, f.Limit}
	if f.Project != "" { // a condition of its own lets PostgreSQL use the index of the project
		where, args = where+` and project_id = $4`, append(args, f.Project)
	}
	err = s.db.InSnapshot(ctx, func(tx db.Tx) error {
		var sizes []int
		all, err := db.QueryAll(ctx, tx, func(row pgx.CollectableRow) (lease.Lease, error) {
			var size int
			l, err := scanLease(row, &size)
			sizes = append(sizes, size)
			return l, err
		}, `
			select `+leaseColumns+`, `+leaseSizeSQL+`
			from lease
			where `+where+`
			order by created_at, id
			limit $3`, args...)
		if err != nil {
			return err
		}
		n := 0
		for size := 0; n < len(all) && (n == 0 || size+sizes[n] <= pageBytes); n++ {
			size += sizes[n]
		}
		page, last = all[:n], n == len(all) && n < f.Limit
		return readDetails(ctx, tx, page)
	})
	if err != nil {
		return nil, false, fmt.Errorf("list leases: %w", err)
	}
	return page, last, nil
}

// leases reads leases with their reservations and events from one snapshot of the database, so that the
// statuses of leases, reservations and events are consistent.
func (s *Store) leases(ctx context.Context, where string, args ...any) (all []lease.Lease, err error) {
	err = s.db.InSnapshot(ctx, func(tx db.Tx) error {
		all, err = readLeases(ctx, tx, where, args...)
		return err
	})
	return all, err
}

func leaseNotFound(id uuid.UUID) error { return fmt.Errorf("%w: lease %s", db.ErrNotFound, id) }

// lockLease locks the row of a lease and reads the lease. A transaction may write the reservations, events or
// allocations of a lease only if it holds the lock on the row of the lease.
func lockLease(ctx context.Context, tx *transaction, id uuid.UUID) (lease.Lease, error) {
	if err := tx.QueryRow(ctx, `select id from lease where id = $1 for update`, id).Scan(&id); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return lease.Lease{}, leaseNotFound(id)
		}
		return lease.Lease{}, fmt.Errorf("lock lease %s: %w", id, err)
	}
	all, err := readLeases(ctx, tx, `id = $1`, id)
	if err != nil {
		return lease.Lease{}, err
	}
	return all[0], nil
}

// leaseColumns are the columns of a SQL query that scanLease reads.
const leaseColumns = `id, name, user_id, project_id, status, start_at, end_at, degraded, delete_requested_at is not null, created_at, updated_at`

// scanLease reads the columns leaseColumns of a row into a lease, and the columns after leaseColumns into the
// pointers in `more`.
func scanLease(row pgx.CollectableRow, more ...any) (l lease.Lease, err error) {
	err = row.Scan(
		append(
			[]any{
				&l.ID,
				&l.Name,
				&l.User,
				&l.Project,
				&l.Status,
				&l.StartAt,
				&l.EndAt,
				&l.Degraded,
				&l.DeleteRequested,
				&l.CreatedAt,
				&l.UpdatedAt,
			},
			more...)...)
	return l, err
}

func readLeases(ctx context.Context, tx db.Tx, where string, args ...any) ([]lease.Lease, error) {
	all, err := db.QueryAll(
		ctx,
		tx,
		func(row pgx.CollectableRow) (lease.Lease, error) { return scanLease(row) },
		`
		select `+leaseColumns+`
		from lease
		where `+where+`
		order by created_at, id`,
		args...)
	if err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	if err := readDetails(ctx, tx, all); err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	return all, nil
}

// readDetails reads the reservations, events and blockers of the given leases, and sets the corresponding
// fields of the leases.
func readDetails(ctx context.Context, tx db.Tx, all []lease.Lease) error {
	if len(all) == 0 {
		return nil
	}
	ids, byID := make([]uuid.UUID, len(all)), map[uuid.UUID]*lease.Lease{}
	for i := range all {
		ids[i], byID[all[i].ID] = all[i].ID, &all[i]
	}
	batch := &pgx.Batch{}
	queueReservations(batch, ids, byID)
	queueFailures(batch, ids, byID)
	queueEvents(batch, ids, byID)
	queueBlockers(batch, all, byID)
	return tx.SendBatch(ctx, batch).Close()
}

func queueReservations(batch *pgx.Batch, ids []uuid.UUID, byID map[uuid.UUID]*lease.Lease) {
	batch.Queue(`
		select r.lease_id, r.id, r.resource_type, r.status, r.min_hosts, r.max_hosts, r.hypervisor_properties,
			r.resource_properties, r.before_end, r.amount, r.vcpus, r.memory_mb, r.disk_gb, r.affinity, r.flavor,
			coalesce(r.network_id, '00000000-0000-0000-0000-000000000000'), r.required_addresses, r.aggregate_id,
			r.server_group_id, r.shape, r.shaped, r.missing_resources, r.resources_changed, r.last_error, r.created_at, r.updated_at,
			array(select a.host_id from host_allocation a where a.reservation_id = r.id order by a.host_id),
			array(select a.slots from host_allocation a where a.reservation_id = r.id order by a.host_id),
			array(select f.address from floatingip_allocation a join floatingip f on f.id = a.floatingip_id
				where a.reservation_id = r.id order by f.address),
			array(select a.resource_id from resource_allocation a where a.reservation_id = r.id order by a.resource_id),
			r.network_name, r.network_description, r.network_properties, r.cloud_network_id
		from reservation r
		where r.lease_id = any($1)
		order by r.lease_id, r.position`, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			r, err := scanReservation(rows, &id)
			if err != nil {
				return err
			}
			byID[id].Reservations = append(byID[id].Reservations, r)
		}
		return rows.Err()
	})
}

func scanReservation(rows pgx.Rows, of *uuid.UUID) (r lease.Reservation, err error) {
	var slots []int
	err = rows.Scan(
		of,
		&r.ID,
		&r.Type,
		&r.Status,
		&r.Min,
		&r.Max,
		&r.HypervisorProperties,
		&r.ResourceProperties,
		&r.BeforeEnd,
		&r.Amount,
		&r.VCPUs,
		&r.MemoryMB,
		&r.DiskGB,
		&r.Affinity,
		&r.Flavor,
		&r.Network,
		&r.Required,
		&r.AggregateID,
		&r.ServerGroupID,
		&r.Revision,
		&r.CloudRevision,
		&r.MissingResources,
		&r.ResourcesChanged,
		&r.LastError,
		&r.CreatedAt,
		&r.UpdatedAt,
		&r.Hosts,
		&slots,
		&r.Addresses,
		&r.ResourceIDs,
		&r.NetworkName,
		&r.NetworkDescription,
		&r.NetworkProperties,
		&r.NetworkID,
	)
	r.HoldsAddresses = len(r.Addresses) > 0
	if r.Type == lease.VirtualInstance || r.Type == lease.FlavorInstance {
		r.Slots = map[int64]int{}
		for i, host := range r.Hosts {
			r.Slots[host] = slots[i]
		}
	}
	return r, err
}

func queueEvents(batch *pgx.Batch, ids []uuid.UUID, byID map[uuid.UUID]*lease.Lease) {
	batch.Queue(`
		select lease_id, id, event_type, at, status, runs, created_at, updated_at
		from event
		where lease_id = any($1)
		order by lease_id, at, array_position(array['start_lease', 'before_end_lease', 'end_lease'], event_type)`, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			var e lease.Event
			if err := rows.Scan(&id, &e.ID, &e.Type, &e.At, &e.Status, &e.Runs, &e.CreatedAt, &e.UpdatedAt); err != nil {
				return err
			}
			byID[id].Events = append(byID[id].Events, e)
		}
		return rows.Err()
	})
}

// saveLease writes the differences between the states `was` and `is` of a locked lease.
func saveLease(ctx context.Context, tx *transaction, was, is lease.Lease) error {
	return saveLeases(ctx, tx, transition{before: was, after: is})
}

// saveLeases writes the transitions of several locked leases to the database, and stores the notifications
// about these transitions.
func saveLeases(ctx context.Context, tx *transaction, all ...transition) error {
	batch, notifications := &pgx.Batch{}, []notificationSet{}
	for _, o := range all {
		queueLease(batch, o.before, o.after)
		notifications = append(notifications,
			notificationSet{o.after, lease.NotificationsFor(o.before, o.after)})
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("save leases: %w", err)
	}
	return enqueueNotifications(ctx, tx, notifications...)
}

func queueLease(batch *pgx.Batch, was, is lease.Lease) {
	batch.Queue(`
		update lease
		set name = $3, status = $4, start_at = $5, end_at = $6, degraded = $7, updated_at = clock_timestamp()
		where id = $1 and status = $2`, is.ID, was.Status, is.Name, is.Status, is.StartAt, is.EndAt, is.Degraded).Exec(requireRow(is.ID, was.Status))
	for i, r := range is.Reservations {
		old := was.Reservations[i]
		if sameReservation(old, r) {
			continue
		}
		batch.Queue(`
			update reservation
			set status = $3, min_hosts = $4, max_hosts = $5, hypervisor_properties = $6, resource_properties = $7,
				before_end = $8, last_error = $9, amount = $10, vcpus = $11, memory_mb = $12, disk_gb = $13, affinity = $14,
				resources = $15, required_addresses = $16, missing_resources = $17, resources_changed = $18, network_name = $19,
				network_description = $20, network_properties = $21, updated_at = clock_timestamp()
			where id = $1 and status = $2`, r.ID, old.Status, r.Status, r.Min, r.Max, r.HypervisorProperties, r.ResourceProperties,
			r.BeforeEnd, r.LastError, r.Amount, r.VCPUs, r.MemoryMB, r.DiskGB, r.Affinity, r.Resources(),
			requiredFloatingIPs(r.ReservationDraft), r.MissingResources, r.ResourcesChanged,
			r.NetworkName, r.NetworkDescription, r.NetworkProperties).Exec(requireRow(is.ID, was.Status))
	}
	for i, e := range is.Events {
		old := was.Events[i]
		if old.Status == e.Status && old.At.Equal(e.At) {
			continue
		}
		batch.Queue(`
			update event
			set status = $3, at = $4, runs = $5, updated_at = clock_timestamp()
			where id = $1 and status = $2`, e.ID, old.Status, e.Status, e.At, e.Runs).Exec(requireRow(is.ID, was.Status))
	}
}

// requireRow returns a callback for an update of a lease. If the update has changed no row, another
// transaction has changed the status of the lease, so the callback returns db.ErrConflict.
func requireRow(id uuid.UUID, from lease.Status) func(tag pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("%w: lease %s is no longer %s", db.ErrConflict, id, from)
		}
		return nil
	}
}

func sameReservation(a, b lease.Reservation) bool {
	return a.Status == b.Status && a.LastError == b.LastError && a.MissingResources == b.MissingResources &&
		a.ResourcesChanged == b.ResourcesChanged && reflect.DeepEqual(a.ReservationDraft, b.ReservationDraft)
}

// nudgeLease returns the nudge that makes a lease's workflow read the lease again. The parameter `fresh` is
// true if the workflow of the lease has never run.
func nudgeLease(l lease.Lease, fresh bool) contract.Nudge {
	return contract.Nudge{
		Workflow:   contract.Lease,
		ID:         contract.LeaseID(l.ID.String()),
		NotRunning: fresh,
		Summary:    l.Name,
		Attributes: contract.Attributes{Status: string(l.Status), Project: l.Project, Resource: "lease"},
	}
}

// databaseTime returns the current time of the database's clock, which is later than the start time of the
// transaction.
func databaseTime(ctx context.Context, tx *transaction) (time.Time, error) {
	var now time.Time
	err := tx.QueryRow(ctx, `select clock_timestamp()`).Scan(&now)
	return now, err
}
