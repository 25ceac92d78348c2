package resource

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

// deletedStatus is the status that the command wait uses for an object that does not exist any more.
const deletedStatus = "DELETED"

// unreachableFrom lists, by resource and wanted status, the statuses from which an object never gets to the
// wanted status by itself.
var unreachableFrom = map[string]map[string][]string{
	"port": {"ACTIVE": {"ERROR"}},
	"lease": {
		"PENDING":    {"STARTING", "ACTIVE", "TERMINATING", "TERMINATED", "ERROR"},
		"STARTING":   {"ACTIVE", "TERMINATING", "TERMINATED", "ERROR"},
		"ACTIVE":     {"TERMINATING", "TERMINATED", "ERROR"},
		"TERMINATED": {"ERROR"},
	},
}

// statuses lists, by resource, the statuses that an object may have.
var statuses = map[string][]string{
	"port":  {"ACTIVE", "DOWN", "BUILD", "ERROR"},
	"lease": {"PENDING", "STARTING", "ACTIVE", "TERMINATING", "TERMINATED", "UPDATING", "DELETING", "ERROR"},
}

// waitCommand makes the command that waits until an object has a status.
func waitCommand(r *cli.Resource, defaultStatus string) func(*pflag.FlagSet) cli.Action {
	return func(f *pflag.FlagSet) cli.Action {
		status := f.String("for", defaultStatus, "status to wait for, or deleted")
		limit := cli.TimeoutFlag(f, 5*time.Minute, "give up after this time")
		return func(ctx context.Context, s *cli.Session, args []string) error {
			wanted := strings.ToUpper(*status)
			if all := append(slices.Clone(statuses[r.Name]), deletedStatus); !slices.Contains(all, wanted) {
				return cli.UsageError("a %s has no status %q; use one of %s", r.Name, *status,
					strings.ToLower(strings.Join(all, ", ")))
			}
			id, err := r.Resolve(ctx, s, args[0])
			if err != nil {
				if wanted == deletedStatus && cli.ExitCode(err) == cli.ExitNotFound {
					return s.Output.PrintMessage(cli.Object{r.IDKey: args[0], "deleted": true},
						"%s %s does not exist", r.Name, args[0])
				}
				return err
			}
			o, err := waitForStatus(ctx, s, r, id, wanted, *limit)
			if err != nil {
				return err
			}
			if o == nil {
				return s.Output.PrintMessage(cli.Object{r.IDKey: id, "deleted": true},
					"%s %s is deleted", r.Name, id)
			}
			return s.Output.PrintObject(o, r.Columns)
		}
	}
}

// waitForStatus reads the object until it has the wanted status. While the API is unavailable, waitForStatus
// keeps trying to read the object.
func waitForStatus(
	ctx context.Context,
	s *cli.Session,
	r *cli.Resource,
	id, wanted string,
	limit time.Duration,
) (cli.Object, error) {
	started := time.Now()
	pause := 50 * time.Millisecond
	for {
		o, err := r.Get(ctx, s, id)
		status := fmt.Sprint(o["status"])
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && cli.ExitCode(err) == cli.ExitNotFound && wanted == deletedStatus:
			return nil, nil
		case err != nil && cli.ExitCode(err) != cli.ExitUnavailable:
			return nil, err
		case err == nil && status == wanted:
			return o, nil
		case err == nil && slices.Contains(unreachableFrom[r.Name][wanted], status):
			return nil, cli.Errorf(cli.ExitWait, Blockers(o), "%s %s is %s and will not become %s",
				r.Name, r.DisplayName(o), status, wanted)
		}
		if time.Since(started)+pause > limit {
			if err != nil {
				return nil, cli.Errorf(cli.ExitWait, err.Error(), "%s %s did not become %s within %s",
					r.Name, id, wanted, limit)
			}
			return nil, cli.Errorf(cli.ExitWait, Blockers(o), "%s %s is still %s after %s",
				r.Name, r.DisplayName(o), status, limit)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(pause*3/2, time.Second)
	}
}
