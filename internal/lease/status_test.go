package lease

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// allowedCombinations is the table of status combinations in Blazar's specification, with two differences: a
// lease whose start failed may end, and no event is IN_PROGRESS while a lease is being deleted or updated.
// The four columns of allowedCombinations are the status of the lease, of its reservations, of the event
// start_lease and of the event end_lease.
const allowedCombinations = `
	CREATING    pending                      UNDONE             UNDONE
	PENDING     pending                      UNDONE             UNDONE
	STARTING    pending,active,error         IN_PROGRESS        UNDONE
	ACTIVE      active                       DONE               UNDONE
	TERMINATING active,deleted,error         DONE,ERROR         IN_PROGRESS
	TERMINATED  deleted                      DONE               DONE
	DELETING    pending,active,deleted,error UNDONE,DONE,ERROR  UNDONE,DONE,ERROR
	UPDATING    pending,active,deleted,error UNDONE,DONE,ERROR  UNDONE,DONE,ERROR
	ERROR       error                        DONE,ERROR         UNDONE,ERROR`

// allowedTransitions lists, for each lease status, the statuses to which the lease may change.
const allowedTransitions = `
	CREATING    PENDING,DELETING
	PENDING     STARTING,UPDATING,DELETING
	STARTING    ACTIVE,ERROR,DELETING
	ACTIVE      TERMINATING,UPDATING,DELETING
	UPDATING    PENDING,ACTIVE,TERMINATED,ERROR,DELETING
	TERMINATING TERMINATED,ERROR,DELETING
	TERMINATED  UPDATING,DELETING
	ERROR       TERMINATING,UPDATING,DELETING
	DELETING    ERROR`

func tableRows(table string) (all [][]string) {
	for line := range strings.Lines(strings.TrimSpace(table)) {
		all = append(all, strings.Fields(line))
	}
	return all
}

func listContains(list string, s string) bool { return slices.Contains(strings.Split(list, ","), s) }

func TestCheckStatus_AllowsExactlyTheCombinationsOfTheSpecification(t *testing.T) {
	t.Parallel()
	reservations := []ReservationStatus{
		ReservationPending,
		ReservationActive,
		ReservationDeleted,
		ReservationError,
	}
	events := []EventStatus{EventUndone, EventInProgress, EventDone, EventFailed}
	checked := 0
	for _, row := range tableRows(allowedCombinations) {
		for _, first := range reservations {
			for _, second := range reservations {
				for _, start := range events {
					for _, end := range events {
						l := Lease{
							Status:       Status(row[0]),
							Reservations: []Reservation{{Status: first}, {Status: second}},
							Events: []Event{
								{Type: StartLease, Status: start},
								{Type: EndLease, Status: end},
								{Type: BeforeEndLease, Status: EventFailed},
							},
						}
						want := listContains(row[1], string(first)) && listContains(row[1], string(second)) &&
							listContains(row[2], string(start)) &&
							listContains(row[3], string(end))
						if err := CheckStatus(l); (err == nil) != want {
							t.Errorf(
								"CheckStatus of lease %s, reservations %s and %s, start_lease %s, end_lease %s: got error %v, want success: %t",
								row[0], first, second, start, end, err, want,
							)
						}
						checked++
					}
				}
			}
		}
	}
	if want := 9 * 16 * 16; checked != want {
		t.Errorf("number of combinations that the test checked: got %d, want %d", checked, want)
	}
}

func TestStatus_AllowsExactlyTheTransitionsOfTheSpecification(t *testing.T) {
	t.Parallel()
	rows := tableRows(allowedTransitions)
	for _, row := range rows {
		for _, to := range rows {
			if got, want := Status(row[0]).CanBecome(Status(to[0])), listContains(row[1], to[0]); got != want {
				t.Errorf("lease may change from %s to %s: got %t, want %t", row[0], to[0], got, want)
			}
		}
	}
}

func TestDeriveStatus_FollowsFromEventsAndReservations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		start, end  EventStatus
		reservation ReservationStatus
		want        Status
	}{
		{EventUndone, EventUndone, ReservationPending, Pending},
		{EventUndone, EventUndone, ReservationActive, Error},
		{EventDone, EventUndone, ReservationActive, Active},
		{EventDone, EventUndone, ReservationPending, Error},
		{EventDone, EventDone, ReservationDeleted, Terminated},
		{EventDone, EventDone, ReservationActive, Error},
		{EventFailed, EventUndone, ReservationError, Error},
		{EventDone, EventFailed, ReservationError, Error},
		{EventInProgress, EventUndone, ReservationPending, Error},
	} {
		t.Run(fmt.Sprintf("%s %s %s", c.start, c.end, c.reservation), func(t *testing.T) {
			t.Parallel()
			l := sample(1)
			l.event(StartLease).Status, l.event(EndLease).Status, l.Reservations[0].Status = c.start, c.end, c.reservation
			if got := DeriveStatus(l); got != c.want {
				t.Errorf("DeriveStatus: got %s, want %s", got, c.want)
			}
		})
	}
}
