package lease

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// An earlier version accepted a reservation of no floating IPs. The dates of the reservation's lease can
// still change, but the reservation cannot change to another one that is not valid.
func TestApplyChange_KeepsReservationsThatOlderRulesAllowed(t *testing.T) {
	t.Parallel()
	now := time.Date(2039, 1, 1, 9, 0, 0, 0, time.UTC)
	s := Schedule{Start: now.Add(time.Hour), End: now.Add(2 * time.Hour)}
	l := NewLease(Draft{
		Name:         "l",
		Reservations: []ReservationDraft{{Type: FloatingIP, Network: uuid.New(), Amount: 0}},
	}, s, uuid.New)
	later := RequestedDate{At: now.Add(3 * time.Hour)}
	moved, err := ApplyChange(l, Change{End: &later}, now)
	if err != nil || !moved.EndAt.Equal(later.At) {
		t.Errorf("move the end of a lease: got the end %s, error %v; want the end %s",
			moved.EndAt, err, later.At)
	}
	network := uuid.New()
	for name, c := range map[string]ReservationChange{"amount -1": {Amount: new(-1)}, "another network": {Network: &network}} {
		t.Run(name, func(t *testing.T) {
			c.ID = l.Reservations[0].ID.String()
			if _, err := ApplyChange(l, Change{Reservations: []ReservationChange{c}}, now); err == nil {
				t.Error("change the reservation: got no error, want a fault")
			}
		})
	}
}

// An earlier version stored requirements with the blanks that the client wrote.
func TestApplyChange_SameRequirementsWithOtherBlanksAreNoChange(t *testing.T) {
	t.Parallel()
	now := time.Date(2039, 1, 1, 9, 0, 0, 0, time.UTC)
	s := Schedule{Start: now.Add(time.Hour), End: now.Add(2 * time.Hour)}
	d := ReservationDraft{
		Type:     VirtualInstance,
		Amount:   1,
		VCPUs:    1,
		MemoryMB: 1,
	}
	l := NewLease(Draft{Name: "l", Reservations: []ReservationDraft{d}}, s, uuid.New)
	l.Status = Active
	r := &l.Reservations[0]
	r.Status, r.ResourceProperties = ReservationActive, `["=",  "$gpu", "x"]`
	c := ReservationChange{ID: r.ID.String(), ResourceProperties: new(`["=", "$gpu", "x"]`)}
	if is, err := ApplyChange(l, Change{Reservations: []ReservationChange{c}}, now); err != nil ||
		is.Reservations[0].ResourceProperties != r.ResourceProperties {
		t.Errorf(
			"send the requirements of an active reservation with other blanks: got %+v, error %v; want no change",
			is.Reservations[0],
			err,
		)
	}
	c.ResourceProperties = new(`["=", "$gpu", "y"]`)
	_, err := ApplyChange(l, Change{Reservations: []ReservationChange{c}}, now)
	if kindOf(err) != CannotUpdate {
		t.Errorf(
			"send other requirements of an active reservation: got error %v, want a fault of kind CannotUpdate",
			err,
		)
	}
}
