package lease

import (
	"slices"
	"strings"
	"testing"
)

// specification is the table of combinations as the specification writes it, with what was decided about it: a failed
// start may end, and nothing is in progress while a lease is deleted or updated. The lease's status is followed by
// those of its reservations, of its start and of its end.
const specification = `
	CREATING    pending                      UNDONE             UNDONE
	PENDING     pending                      UNDONE             UNDONE
	STARTING    pending,active,error         IN_PROGRESS        UNDONE
	ACTIVE      active                       DONE               UNDONE
	TERMINATING active,deleted,error         DONE,ERROR         IN_PROGRESS
	TERMINATED  deleted                      DONE               DONE
	DELETING    pending,active,deleted,error UNDONE,DONE,ERROR  UNDONE,DONE,ERROR
	UPDATING    pending,active,deleted,error UNDONE,DONE,ERROR  UNDONE,DONE,ERROR
	ERROR       error                        DONE,ERROR         UNDONE,ERROR`

// moves is which status may follow which.
const moves = `
	CREATING    PENDING,DELETING
	PENDING     STARTING,UPDATING,DELETING
	STARTING    ACTIVE,ERROR,DELETING
	ACTIVE      TERMINATING,UPDATING,DELETING
	UPDATING    PENDING,ACTIVE,TERMINATED,ERROR,DELETING
	TERMINATING TERMINATED,ERROR,DELETING
	TERMINATED  UPDATING,DELETING
	ERROR       TERMINATING,UPDATING,DELETING
	DELETING    ERROR`

func lines(table string) (all [][]string) {
	for line := range strings.Lines(strings.TrimSpace(table)) {
		all = append(all, strings.Fields(line))
	}
	return all
}

func has(list string, s string) bool { return slices.Contains(strings.Split(list, ","), s) }

func TestExactlyTheCombinationsOfTheSpecificationAreAllowed(t *testing.T) {
	t.Parallel()
	reservations := []ReservationStatus{ReservationPending, ReservationActive, ReservationDeleted, ReservationError}
	events := []EventStatus{Undone, InProgress, Done, Failed}
	checked := 0
	for _, row := range lines(specification) {
		for _, first := range reservations {
			for _, second := range reservations {
				for _, start := range events {
					for _, end := range events {
						l := Lease{Status: Status(row[0]), Reservations: []Reservation{{Status: first}, {Status: second}},
							Events: []Event{{Type: StartLease, Status: start}, {Type: EndLease, Status: end}, {Type: BeforeEndLease, Status: Failed}}}
						want := has(row[1], string(first)) && has(row[1], string(second)) && has(row[2], string(start)) && has(row[3], string(end))
						if err := Check(l); (err == nil) != want {
							t.Errorf("%s %s,%s %s %s: %v", row[0], first, second, start, end, err)
						}
						checked++
					}
				}
			}
		}
	}
	if want := 9 * 16 * 16; checked != want {
		t.Errorf("%d combinations of %d", checked, want)
	}
}

func TestExactlyTheTransitionsOfTheSpecificationAreAllowed(t *testing.T) {
	t.Parallel()
	rows := lines(moves)
	for _, row := range rows {
		for _, to := range rows {
			if got, want := Status(row[0]).CanBecome(Status(to[0])), has(row[1], to[0]); got != want {
				t.Errorf("%s to %s: %t", row[0], to[0], got)
			}
		}
	}
}
