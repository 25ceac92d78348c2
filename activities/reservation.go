package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/leasestore"
)

// Cloud provisions reservations in Nova and Neutron. Every method of Cloud is idempotent, because Temporal
// may repeat the activity that calls it.
type Cloud interface {
	// ResourceTypes returns the resource types whose reservations need calls to Nova or Neutron.
	ResourceTypes() []string
	// Provision creates or updates a reservation in Nova or Neutron and returns the IDs of the created
	// objects.
	Provision(ctx context.Context, c lease.CloudReservation) (lease.CloudIDs, error)
	// CheckFree returns an error if Neutron has an object of another owner where berth has not begun to
	// create one for the reservation: a floating IP with one of its addresses, or a network on its segment.
	CheckFree(ctx context.Context, c lease.CloudReservation) error
	// Deprovision removes a reservation from Nova or Neutron. Deprovision returns an error while Nova is
	// still deleting servers of the reservation: lease.ErrFormerHosts if only servers on former hosts are
	// left.
	Deprovision(ctx context.Context, c lease.CloudReservation) error
	// EmptyFormerHosts returns those former hosts of a reservation of hosts that have no server of it.
	EmptyFormerHosts(ctx context.Context, c lease.CloudReservation) ([]lease.FormerHost, error)
	// BeforeEnd runs the action before the end of a reservation.
	BeforeEnd(ctx context.Context, c lease.CloudReservation) error
	// AddToFreepool adds a host to Nova's aggregate of free hosts, unless a reservation uses the host.
	AddToFreepool(ctx context.Context, host string) error
	// RemoveFromFreepool removes a host from Nova's aggregate of free hosts.
	RemoveFromFreepool(ctx context.Context, host string) error
}

// ProvisionReservation allocates a reservation in the inventory and provisions it in Nova or Neutron. If the
// lease was deleted in the meantime, ProvisionReservation removes the reservation again. ProvisionReservation
// is idempotent. ProvisionReservation returns a BackendError if the resources are in use, or if Nova or
// Neutron refuses the reservation.
func (a *Activities) ProvisionReservation(ctx context.Context, id uuid.UUID) error {
	defer startHeartbeat(ctx)()
	return a.recordCall(ctx, id, a.provisionReservation(ctx, id))
}

func (a *Activities) provisionReservation(ctx context.Context, id uuid.UUID) error {
	if err := a.Store.Lease.AddToInventory(ctx, id); err != nil {
		return inventoryError("allocate the resources of the reservation", err)
	}
	c, err := a.Store.Lease.CloudReservation(ctx, id)
	switch {
	case err != nil:
		return err
	case a.callsCloud(c.Type):
		return a.limitCall(ctx, c, a.provisionInCloud)
	// Nova and Neutron need no update; berth records this, because otherwise the workflow would repeat the
	// update
	case c.CloudOutdated():
		return a.Store.Lease.SaveCloudIDs(ctx, id, lease.CloudIDs{
			Revision:      c.Revision,
			AggregateID:   c.AggregateID,
			ServerGroupID: c.ServerGroupID,
			NetworkID:     c.NetworkID,
		})
	}
	return nil
}

// provisionInCloud provisions a reservation in Nova or Neutron, and stores the IDs of the created objects. If
// the lease was deleted in the meantime, provisionInCloud removes the reservation again.
func (a *Activities) provisionInCloud(ctx context.Context, c lease.CloudReservation) error {
	mark, err := a.provisionAndKeepIDs(ctx, &c)
	if err != nil {
		return err
	}
	err = a.Store.Lease.SaveCloudIDs(ctx, c.ID, mark)
	if errors.Is(err, db.ErrConflict) || errors.Is(err, db.ErrNotFound) {
		if failure := a.Cloud.Deprovision(ctx, c); failure != nil {
			a.keepLeftover(ctx, c, failure)
			err = errors.Join(err, failure)
		}
	}
	return err
}

// provisionAndKeepIDs provisions a reservation in Nova or Neutron. It stores the IDs of the network and the
// floating IPs that now exist, also if a later call fails or ctx has ended, and whatever the status of the
// lease is now: the project can change everything else by which berth would find them. The fields NetworkID
// and FloatingIPIDs of c then contain these IDs, too.
func (a *Activities) provisionAndKeepIDs(
	ctx context.Context,
	c *lease.CloudReservation,
) (lease.CloudIDs, error) {
	if err := a.beginCreation(ctx, c); err != nil {
		return lease.CloudIDs{}, err
	}
	mark, err := a.Cloud.Provision(ctx, *c)
	created, deleted := without(mark.FloatingIPIDs, c.FloatingIPIDs), []string(nil)
	if err == nil {
		deleted = without(c.FloatingIPIDs, mark.FloatingIPIDs)
	}
	newNetwork := mark.NetworkID != "" && mark.NetworkID != c.NetworkID
	if len(created)+len(deleted) == 0 && !newNetwork {
		return mark, err
	}
	if newNetwork {
		c.NetworkID = mark.NetworkID
	}
	c.FloatingIPIDs = slices.Concat(c.FloatingIPIDs, created)
	record, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.Timeouts.Record)
	defer cancel()
	return mark, errors.Join(err, a.Store.Lease.SaveNeutronIDs(record, *c, leasestore.NeutronIDs{
		Network:            c.NetworkID,
		CreatedFloatingIPs: created,
		DeletedFloatingIPs: deleted,
	}))
}

// beginCreation stores that berth begins to create the floating IPs or the network of a reservation, after it
// has checked that their addresses or the segment are free. berth then recognises each floating IP by its
// address and the network by its segment, also if the answer with the ID is lost.
func (a *Activities) beginCreation(ctx context.Context, c *lease.CloudReservation) error {
	all := c.NotCreated()
	if len(all) == 0 && !c.NeedsNetwork() {
		return nil
	}
	if err := a.Cloud.CheckFree(ctx, *c); err != nil {
		return err
	}
	if c.NeedsNetwork() {
		err := a.Store.Lease.BeginNetwork(ctx, c.ID)
		c.NetworkBegun = err == nil
		return err
	}
	if err := a.Store.Lease.BeginFloatingIPs(ctx, c.ID, all); err != nil {
		return err
	}
	c.Created = slices.Concat(c.Created, all)
	return nil
}

// without returns the elements of `all` that are not in `others`.
func without(all, others []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(others, s) })
}

// deprovisionAtEnd removes a reservation from Nova or Neutron at the end of its lease. Servers on former
// hosts do not delay the end: the sweep repeats their deletion (see clearLeftovers).
func (a *Activities) deprovisionAtEnd(ctx context.Context, c lease.CloudReservation) error {
	err := a.Cloud.Deprovision(ctx, c)
	if errors.Is(err, lease.ErrFormerHosts) {
		slog.WarnContext(ctx, "the end of a lease does not wait for the servers on its former hosts",
			"reservation", c.ID, "error", err)
		return nil
	}
	return err
}

// ReleaseReservation removes a reservation from Nova and Neutron, and then from the inventory. If the
// reservation is of hosts or instances, ReleaseReservation also deletes the reservation's servers.
// ReleaseReservation is idempotent.
func (a *Activities) ReleaseReservation(ctx context.Context, id uuid.UUID) error {
	defer startHeartbeat(ctx)()
	return a.recordCall(ctx, id, a.releaseReservation(ctx, id))
}

func (a *Activities) releaseReservation(ctx context.Context, id uuid.UUID) error {
	err := a.callCloud(ctx, id, a.Store.Lease.EndingCloudReservation, a.deprovisionAtEnd)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return err
	}
	return inventoryError("remove the resources of the reservation",
		a.Store.Lease.ReleaseReservation(ctx, id))
}

// RunBeforeEndAction runs a reservation's before_end action in Nova, for example a snapshot of the
// reservation's servers. If the event is not in progress, because its date has changed, RunBeforeEndAction
// returns a Conflict.
func (a *Activities) RunBeforeEndAction(ctx context.Context, id uuid.UUID) error {
	defer startHeartbeat(ctx)()
	act := func(ctx context.Context, c lease.CloudReservation) error {
		if c.BeforeEndAt.IsZero() {
			return fmt.Errorf("%w: the before_end_lease event of reservation %s is not in progress",
				db.ErrConflict, c.ID)
		}
		c.BeforeEnd = a.beforeEndAction(c.Reservation)
		return a.Cloud.BeforeEnd(ctx, c)
	}
	return a.recordCall(ctx, id, a.callCloud(ctx, id, a.Store.Lease.CloudReservation, act))
}

// callCloud reads a reservation. If reservations of this resource type need calls to Nova or Neutron,
// callCloud also runs the function `call`.
func (a *Activities) callCloud(
	ctx context.Context,
	id uuid.UUID,
	read func(context.Context, uuid.UUID) (lease.CloudReservation, error),
	call func(context.Context, lease.CloudReservation) error,
) error {
	if a.Cloud == nil {
		return nil
	}
	c, err := read(ctx, id)
	if err != nil || !a.callsCloud(c.Type) {
		return err
	}
	return a.limitCall(ctx, c, call)
}

// callsCloud reports whether reservations of a resource type need calls to Nova or Neutron.
func (a *Activities) callsCloud(typ string) bool {
	return a.Cloud != nil && slices.Contains(a.Cloud.ResourceTypes(), typ)
}

// limitCall runs the function `call` for a reservation, and limits its time.
func (a *Activities) limitCall(
	ctx context.Context,
	c lease.CloudReservation,
	call func(context.Context, lease.CloudReservation) error,
) error {
	ctx, cancel := a.withCallTimeout(ctx, a.Timeouts.CloudCall)
	defer cancel()
	return namedCall(call(ctx, c))
}

// namedCall returns the error of calls to Nova or Neutron as a *lease.CallError. An error of the database
// stays as it is.
func namedCall(err error) error {
	var named *lease.CallError
	if err == nil || errors.As(err, &named) || errors.Is(err, db.ErrConflict) ||
		errors.Is(err, db.ErrNotFound) {
		return err
	}
	return &lease.CallError{Party: lease.PartyCloud, Call: "apply the reservation", Err: err}
}

// withCallTimeout limits the time of the calls of one attempt. In a local activity the limit is
// Timeouts.ShortCall; in a regular activity the limit is the given time.
func (a *Activities) withCallTimeout(
	ctx context.Context,
	regular time.Duration,
) (context.Context, context.CancelFunc) {
	if activity.IsActivity(ctx) && !activity.GetInfo(ctx).IsLocalActivity {
		return context.WithTimeout(ctx, regular)
	}
	return context.WithTimeout(ctx, a.Timeouts.ShortCall)
}
