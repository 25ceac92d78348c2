package leasestore

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// CreateLease creates a lease with its events and reservations, and allocates resources to the reservations.
// CreateLease returns a *lease.Fault if the lease draft is invalid, if the quota of the project is exceeded
// or if there are not enough free resources.
func (s *Store) CreateLease(ctx context.Context, d lease.Draft) (l lease.Lease, err error) {
	if err := lease.CheckDraft(d); err != nil {
		return l, err
	}
	err = s.inTx(ctx, func(tx *transaction) error {
		l, err = s.createLease(ctx, tx, d)
		tx.Changed(db.Change{Type: "lease", ID: l.ID.String()})
		return err
	})
	return l, err
}

func (s *Store) createLease(ctx context.Context, tx *transaction, d lease.Draft) (l lease.Lease, err error) {
	now, err := databaseTime(ctx, tx)
	if err != nil {
		return l, err
	}
	dates, err := lease.NewSchedule(d, s.config.Limits.BeforeEndLead, now)
	if err != nil {
		return l, err
	}
	if err := s.config.Limits.CheckNew(d.Project, dates); err != nil {
		return l, err
	}
	if err := s.checkQuota(ctx, tx, d); err != nil {
		return l, err
	}
	l = lease.NewLease(d, dates, uuid.New)
	if err := insertLease(ctx, tx, l); err != nil {
		return l, err
	}
	err = retryTaken(ctx, tx, func(tx *transaction) error { return s.allocateAll(ctx, tx, l, now) })
	if err != nil {
		return l, err
	}
	if err := outbox.Enqueue(ctx, tx, nudgeLease(l, true)); err != nil {
		return l, err
	}
	if l, err = lockLease(ctx, tx, l.ID); err != nil {
		return l, err
	}
	return l, enqueueNotifications(ctx, tx, notificationSet{l, lease.NotificationsFor(lease.Lease{}, l)})
}

// UpdateLease changes the name, dates or reservations of a lease. UpdateLease returns a *lease.Fault if the
// lease is in a transitional status, if the change is invalid, or if there are not enough free resources.
func (s *Store) UpdateLease(ctx context.Context, id uuid.UUID, c lease.Change) (l lease.Lease, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		l, err = s.updateLease(ctx, tx, id, c)
		return err
	})
	return l, err
}

// UpdateUnchangedLease does the same as UpdateLease, but returns db.ErrConflict if the lease has changed
// since it was read as `seen`.
func (s *Store) UpdateUnchangedLease(
	ctx context.Context,
	seen lease.Lease,
	c lease.Change,
) (l lease.Lease, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		is, err := lockLease(ctx, tx, seen.ID)
		if err != nil {
			return err
		}
		if !sameTime(is.UpdatedAt, seen.UpdatedAt) {
			return fmt.Errorf("%w: lease %s has changed", db.ErrConflict, seen.ID)
		}
		l, err = s.updateLease(ctx, tx, seen.ID, c)
		return err
	})
	return l, err
}

// sameTime reports whether two times are equal, or both missing.
func sameTime(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }

// PlanUpdate returns the lease as it would be after a change, or the *lease.Fault that UpdateLease would
// return. PlanUpdate makes the change in a transaction and rolls the transaction back, so that the lease does
// not change.
func (s *Store) PlanUpdate(ctx context.Context, id uuid.UUID, c lease.Change) (l lease.Lease, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		if l, err = s.updateLease(ctx, tx, id, c); err != nil {
			return err
		}
		return errPlanned
	})
	if !errors.Is(err, errPlanned) {
		return lease.Lease{}, err
	}
	return l, nil
}

func (s *Store) updateLease(
	ctx context.Context,
	tx *transaction,
	id uuid.UUID,
	c lease.Change,
) (l lease.Lease, err error) {
	was, err := lockLease(ctx, tx, id)
	if err != nil {
		return l, err
	}
	now, err := databaseTime(ctx, tx)
	if err != nil {
		return l, err
	}
	is, err := lease.ApplyChange(was, c, now)
	if err != nil {
		return l, err
	}
	if err := s.config.Limits.CheckChanged(is, c); err != nil {
		return l, err
	}
	if !c.OnlyRenames() {
		// the update fails unless every reservation gets all its resources
		is = lease.WithUpdatedHealth(was, is)
	}
	if err := saveLease(ctx, tx, was, is); err != nil {
		return l, err
	}
	if !c.OnlyRenames() {
		err = retryTaken(ctx, tx,
			func(tx *transaction) error { return s.reallocateAll(ctx, tx, was, is, now) })
	}
	if err != nil {
		return l, err
	}
	nudges, err := newLeaderNudges(ctx, tx, was, is)
	if err == nil {
		err = outbox.Enqueue(ctx, tx, append(nudges, nudgeLease(is, false))...)
	}
	if err != nil {
		return l, err
	}
	return lockLease(ctx, tx, id)
}

func insertLease(ctx context.Context, tx *transaction, l lease.Lease) error {
	batch := &pgx.Batch{}
	batch.Queue(`
		insert into lease (id, name, user_id, project_id, status, start_at, end_at)
		values ($1, $2, $3, $4, $5, $6, $7)`, l.ID, l.Name, l.User, l.Project, l.Status, l.StartAt, l.EndAt)
	for i, r := range l.Reservations {
		batch.Queue(
			`
			insert into reservation (id, lease_id, position, resource_type, status, min_hosts, max_hosts, hypervisor_properties,
				resource_properties, before_end, amount, vcpus, memory_mb, disk_gb, affinity, flavor, resources, network_id,
				required_addresses, network_name, network_description, network_properties)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)`,
			r.ID,
			l.ID,
			i,
			r.Type,
			r.Status,
			r.Min,
			r.Max,
			r.HypervisorProperties,
			r.ResourceProperties,
			r.BeforeEnd,
			r.Amount,
			r.VCPUs,
			r.MemoryMB,
			r.DiskGB,
			r.Affinity,
			r.Flavor,
			r.Resources(),
			networkOf(r.ReservationDraft),
			requiredFloatingIPs(r.ReservationDraft),
			r.NetworkName,
			r.NetworkDescription,
			r.NetworkProperties,
		)
	}
	for _, e := range l.Events {
		batch.Queue(`
			insert into event (id, lease_id, event_type, at, status)
			values ($1, $2, $3, $4, $5)`, e.ID, l.ID, e.Type, e.At, e.Status)
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("create lease: %w", err)
	}
	return nil
}

// networkOf returns the network of a reservation of the type virtual:floatingip, or nil for a reservation of
// another type.
func networkOf(d lease.ReservationDraft) *uuid.UUID {
	if d.Type != lease.FloatingIP {
		return nil
	}
	return &d.Network
}

// requiredFloatingIPs returns the floating IPs that a reservation requires. If the reservation requires no
// floating IPs, requiredFloatingIPs returns an empty slice, not nil.
func requiredFloatingIPs(d lease.ReservationDraft) []netip.Addr {
	return append([]netip.Addr{}, d.Required...)
}
