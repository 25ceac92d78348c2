package diagnosis

import (
	"context"
	"fmt"
	"strings"
	"time"

	"berth/starter/cli"
)

const (
	// maxMaintenanceAge is the age from which on doctor reports FAIL for the last completion of a part of the
	// maintenance.
	maxMaintenanceAge = 10 * time.Minute
	// hostsPart is the part of the maintenance that reads the hosts from Nova.
	hostsPart = "hosts"
)

// checkMaintenance checks that each part of the periodic maintenance was completed lately, and that the
// schedule of the sweep, which runs the maintenance, is not paused.
func checkMaintenance(ctx context.Context, s *cli.Session) (string, error) {
	var o struct {
		Maintenance []struct {
			Part        string
			CompletedAt time.Time `json:"completed_at"`
		}
	}
	if err := readAPI(ctx, s, "/operator/v1/projections", &o); err != nil {
		return "", err
	}
	if len(o.Maintenance) == 0 {
		return "", fmt.Errorf("%w: the API does not say when the sweep has ended", errNotConfigured)
	}
	var old, names []string
	onlyHosts, oldest := true, time.Duration(0)
	for _, p := range o.Maintenance {
		age := s.Now().Sub(p.CompletedAt).Round(time.Second)
		names, oldest = append(names, p.Part), max(oldest, age)
		if age > maxMaintenanceAge {
			old = append(old, fmt.Sprintf("%s was completed %s ago", p.Part, age))
			onlyHosts = onlyHosts && p.Part == hostsPart
		}
	}
	paused := pausedSweep(ctx, s)
	found := strings.Join(old, ", ")
	switch {
	case found == "" && paused == "":
		return fmt.Sprintf("%s completed in the last %s", strings.Join(names, ", "), oldest), nil
	case found == "":
		return "", fmt.Errorf("%w: %s; %s", errWarning, paused, resumeSweep)
	case paused != "":
		return "", cli.Errorf(cli.ExitUnavailable, resumeSweep, "%s; %s", found, paused)
	case onlyHosts:
		return "", cli.Errorf(
			cli.ExitUnavailable,
			"Nova must answer GET /os-hypervisors/detail within 12 seconds; the processes with the role temporal log its error.",
			"%s: berth does not notice hosts that fail",
			found,
		)
	default:
		return "", cli.Errorf(
			cli.ExitUnavailable,
			"`starter why "+sweepID+"` explains the present round. The check workers shows whether a process with the role temporal runs.",
			"%s",
			found,
		)
	}
}

// pausedSweep says that the schedule of the sweep is paused, with the note of the person who has paused it.
// If the schedule is not paused, or cannot be read, pausedSweep returns "".
func pausedSweep(ctx context.Context, s *cli.Session) string {
	ctx, cancel := s.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	schedule, err := sweepSchedule(ctx, s)
	if err != nil || schedule.Schedule.State == nil || !schedule.Schedule.State.Paused {
		return ""
	}
	paused := "the schedule " + sweepID + " is paused"
	if note := schedule.Schedule.State.Note; note != "" {
		paused += " (" + note + ")"
	}
	return paused
}
