package lease

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"
)

// ReservableFloatingIP is a floating IP that can be reserved.
type ReservableFloatingIP struct {
	ID         uuid.UUID
	Network    uuid.UUID
	Subnet     uuid.UUID
	IP         netip.Addr
	Reservable bool
	CreatedAt  time.Time
	UpdatedAt  *time.Time
}

// FloatingIPCandidate is a floating IP, with the information whether the floating IP is free in the time
// window of a reservation.
type FloatingIPCandidate struct {
	ReservableFloatingIP
	Booked bool // another reservation has it, in the window or at another time
	Free   bool // not reserved in the window
}

// floatingIPType is the resource type virtual:floatingip.
type floatingIPType struct{}

func (floatingIPType) Check(d ReservationDraft) error {
	if err := checkAmount(d.Amount, 1); err != nil {
		return err
	}
	if len(d.Required) > d.Amount {
		return Faultf(InvalidInput, "%d floating IPs are required, which is more than the amount %d.",
			len(d.Required), d.Amount)
	}
	for i, a := range d.Required {
		if slices.Contains(d.Required[:i], a) {
			return Faultf(InvalidInput, "The floating IP %s is required twice.", a)
		}
	}
	return nil
}

// CheckChange rejects a change of the network, and a change of the list of required addresses other than
// emptying the list. If the reservation is not pending any more, CheckChange also rejects a smaller number of
// addresses.
func (floatingIPType) CheckChange(was Reservation, is ReservationDraft) error {
	switch {
	case is.Network != was.Network:
		return Faultf(InvalidInput, "The network_id of a reservation cannot be updated.")
	case len(is.Required) > 0 && !slices.Equal(is.Required, was.Required):
		return Faultf(InvalidInput, "The required_floatingips of a reservation can only be emptied.")
	case is.Amount < was.Amount && was.Status != ReservationPending:
		return Faultf(InvalidInput, "The amount of an active reservation of floating IPs cannot be reduced.")
	}
	return nil
}

// AllocationOrder returns the indexes of the reservations in the order in which they get their resources:
// reservations that require certain floating IPs come first, so that no other reservation of the lease gets
// one of these floating IPs.
func AllocationOrder(all []Reservation) (order []int) {
	for i := range all {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Compare(min(1, len(all[j].Required)), min(1, len(all[i].Required)))
	})
	return order
}

// PickFloatingIPs chooses the given number of addresses, including all required addresses. PickFloatingIPs
// prefers addresses that have no reservation at any time.
func PickFloatingIPs(
	candidates []FloatingIPCandidate,
	amount int,
	required []netip.Addr,
) ([]uuid.UUID, error) {
	var picked []uuid.UUID
	for _, ip := range required {
		i := slices.IndexFunc(candidates,
			func(c FloatingIPCandidate) bool { return c.IP == ip && c.Reservable && c.Free })
		if i < 0 {
			return nil, Faultf(NotEnoughAddresses, "Not enough floating IPs available: %s is not free.", ip)
		}
		picked = append(picked, candidates[i].ID)
	}
	for _, booked := range []bool{false, true} {
		for _, c := range candidates {
			if len(picked) < amount && c.Reservable && c.Free && c.Booked == booked &&
				!slices.Contains(picked, c.ID) {
				picked = append(picked, c.ID)
			}
		}
	}
	if len(picked) < amount {
		return nil, Faultf(NotEnoughAddresses, "Not enough floating IPs available")
	}
	return picked, nil
}
