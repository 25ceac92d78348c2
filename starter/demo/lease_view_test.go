package demo

import (
	"fmt"
	"testing"

	"berth/starter/cli"
)

// leaseObject makes a lease in the JSON format of the API.
func leaseObject(status, reservation, start, end string) cli.Object {
	return cli.Object{"status": status, "reservations": []any{cli.Object{"id": "r", "status": reservation}},
		"events": []any{
			cli.Object{"event_type": "start_lease", "status": start},
			cli.Object{"event_type": "end_lease", "status": end},
		}}
}

func TestLeaseView_AllowsOnlyTheCombinationsOfTheLeaseContract(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{}
	for _, row := range []string{
		"CREATING pending UNDONE UNDONE", "PENDING pending UNDONE UNDONE",
		"STARTING pending IN_PROGRESS UNDONE", "STARTING active IN_PROGRESS UNDONE", "STARTING error IN_PROGRESS UNDONE",
		"ACTIVE active DONE UNDONE",
		"TERMINATING active DONE IN_PROGRESS", "TERMINATING deleted DONE IN_PROGRESS", "TERMINATING error DONE IN_PROGRESS",
		"TERMINATING active ERROR IN_PROGRESS", "TERMINATING deleted ERROR IN_PROGRESS", "TERMINATING error ERROR IN_PROGRESS",
		"TERMINATED deleted DONE DONE",
	} {
		allowed[row] = true
	}
	events := []string{"UNDONE", "IN_PROGRESS", "DONE", "ERROR"}
	for _, status := range []string{"CREATING", "PENDING", "STARTING", "ACTIVE", "TERMINATING", "TERMINATED", "ERROR", "DELETING", "UPDATING"} {
		for _, reservation := range []string{"pending", "active", "deleted", "error"} {
			for _, start := range events {
				for _, end := range events {
					row := fmt.Sprintf("%s %s %s %s", status, reservation, start, end)
					if err := newLeaseView(leaseObject(status, reservation, start, end)).check(); (err == nil) != allowed[row] {
						t.Errorf("check the statuses %s: got error %v, want allowed %v",
							row, err, allowed[row])
					}
				}
			}
		}
	}
}
