package lease

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestCheckReservation_FaultKinds(t *testing.T) {
	t.Parallel()
	good := ReservationDraft{
		Type:      PhysicalHost,
		Min:       1,
		Max:       2,
		BeforeEnd: "default",
	}
	if err := CheckReservation(good); err != nil {
		t.Errorf("check a valid reservation: got error %v, want none", err)
	}
	for want, spoil := range map[Kind]func(*ReservationDraft){
		UnsupportedType:       func(r *ReservationDraft) { r.Type = "virtual:unknown" },
		MalformedParameter:    func(r *ReservationDraft) { r.Min = 0 },
		InvalidInput:          func(r *ReservationDraft) { r.Min = 3 },
		MalformedRequirements: func(r *ReservationDraft) { r.ResourceProperties = "[" },
	} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			r := good
			spoil(&r)
			if err := CheckReservation(r); kindOf(err) != want {
				t.Errorf("check an invalid reservation: got %v, want a fault of kind %q", err, want)
			}
		})
	}
	long := good
	long.HypervisorProperties = `["=","$rack","` + strings.Repeat("<", MaxRequirementsSize) + `"]`
	if err := CheckReservation(long); kindOf(err) != MalformedRequirements {
		t.Errorf(
			"check a reservation with requirements that are too long: got %v, want a fault of kind MalformedRequirements",
			err,
		)
	}
	blank := good
	blank.ResourceProperties = "[" + strings.Repeat(" ", 100*MaxRequirementsSize) + `"=","$rack","r1"]`
	if err := CheckReservation(blank); err != nil {
		t.Errorf("check a reservation with short requirements and many blanks: got %v, want no fault", err)
	}
	half := `["=","$rack","` + strings.Repeat("x", MaxRequirementsSize/2) + `"]`
	both := good
	both.HypervisorProperties, both.ResourceProperties = half, half
	if err := CheckReservation(both); kindOf(err) != MalformedRequirements {
		t.Errorf(
			"check a reservation whose two texts of requirements together are too long: got %v, want a fault of kind MalformedRequirements",
			err,
		)
	}
	conditions := good
	conditions.ResourceProperties = conditionsOf(MaxReservationRequirements)
	if err := CheckReservation(conditions); err != nil {
		t.Errorf("check a reservation with %d requirements: got %v, want no fault",
			MaxReservationRequirements, err)
	}
	conditions.HypervisorProperties = conditionsOf(1)
	if err := CheckReservation(conditions); kindOf(err) != MalformedRequirements {
		t.Errorf("check a reservation with %d requirements: got %v, want a fault of kind MalformedRequirements",
			MaxReservationRequirements+1, err)
	}
	many := Draft{Name: "l", Reservations: slices.Repeat([]ReservationDraft{good}, maxReservations+1)}
	if err := CheckDraft(many); kindOf(err) != InvalidInput {
		t.Errorf(
			"check the draft of a lease with %d reservations: got %v, want a fault of kind InvalidInput",
			len(many.Reservations),
			err,
		)
	}
	bad := good
	bad.BeforeEnd = "email"
	if err := CheckReservation(bad); kindOf(err) != MalformedParameter {
		t.Errorf(
			"check a reservation with the unknown before_end action email: got %v, want a fault of kind MalformedParameter",
			err,
		)
	}
}

// conditionsOf returns the text of n requirements.
func conditionsOf(n int) string {
	return `["and"` + strings.Repeat(`,[">","$id","0.1"]`, n) + `]`
}

func TestRequirements_LeaseHasAMaximumTogether(t *testing.T) {
	t.Parallel()
	reservation := ReservationDraft{
		Type:                 PhysicalHost,
		Min:                  1,
		Max:                  1,
		HypervisorProperties: conditionsOf(MaxReservationRequirements),
	}
	const full = MaxLeaseRequirements / MaxReservationRequirements
	d := Draft{Name: "l", Reservations: slices.Repeat([]ReservationDraft{reservation}, full)}
	if err := CheckDraft(d); err != nil {
		t.Errorf("check a lease with %d requirements: got %v, want no fault", MaxLeaseRequirements, err)
	}
	small := reservation
	small.HypervisorProperties = conditionsOf(1)
	d.Reservations = append(d.Reservations, small)
	if err := CheckDraft(d); kindOf(err) != MalformedRequirements {
		t.Errorf("check a lease with %d requirements: got %v, want a fault of kind MalformedRequirements",
			MaxLeaseRequirements+1, err)
	}

	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	l := NewLease(d, Schedule{Start: start, End: start.Add(time.Hour)}, uuid.New) // older rules allowed it
	change := func(n int) error {
		text := conditionsOf(n)
		_, err := ApplyChange(l, Change{Reservations: []ReservationChange{{
			ID:                   l.Reservations[full].ID.String(),
			HypervisorProperties: &text,
		}}}, start.Add(-time.Hour))
		return err
	}
	if err := change(2); kindOf(err) != MalformedRequirements {
		t.Errorf("add a requirement to a lease with too many: got %v, want a fault of kind MalformedRequirements",
			err)
	}
	l.Reservations[full].HypervisorProperties = conditionsOf(3)
	if err := change(2); err != nil {
		t.Errorf("remove a requirement from a lease with too many: got %v, want no fault", err)
	}
}
