package lease_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
)

// A workflow asks Next which step of the lease is due, performs the step between BeginStep and FinishStep,
// and asks Next again.
func Example_nextStep() {
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	schedule := lease.Schedule{Start: start, End: start.Add(time.Hour)}
	l := lease.NewLease(lease.Draft{
		Name:         "training",
		Reservations: []lease.ReservationDraft{{Type: lease.PhysicalHost, Min: 1, Max: 1}},
	}, schedule, uuid.New)

	due := lease.Next(l, start.Add(-time.Minute))
	fmt.Println(l.Status, due.Step, due.At.Format(time.TimeOnly))

	due = lease.Next(l, start)
	fmt.Println(l.Status, due.Step)

	l, err := lease.BeginStep(l, due.Step, start)
	fmt.Println(l.Status, err)

	l, err = lease.FinishStep(l, due.Step, nil) // no reservation failed
	fmt.Println(l.Status, err)

	due = lease.Next(l, start)
	fmt.Println(l.Status, due.Step, due.At.Format(time.TimeOnly))
	// Output:
	// PENDING wait 12:00:00
	// PENDING start
	// STARTING <nil>
	// ACTIVE <nil>
	// ACTIVE wait 13:00:00
}
