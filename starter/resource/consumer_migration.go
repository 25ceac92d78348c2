package resource

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

const migrateConsumersHelp = `Allocations that were imported from an old Placement may belong to consumers without a consumer record. This command
creates the records in batches, with the project and the user of BERTH_INCOMPLETE_CONSUMER_PROJECT_ID and _USER_ID,
while the API serves other requests. You can stop it at any time: finished batches stay, and the next run continues.`

// migrationPause is how long the command waits after a batch that migrated no consumer although some remain.
// Such a batch means that other writers have locked the remaining consumers.
const migrationPause = 200 * time.Millisecond

func migrateConsumers(f *pflag.FlagSet) cli.Action {
	batch := f.Int("batch", 1000, "number of consumers in one batch")
	limit := cli.TimeoutFlag(f, 2*time.Minute, "give up if no consumer can be migrated for this time")
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		progressed := time.Now()
		for done := int64(0); ; {
			var answer cli.Object
			if err := s.API.Do(ctx, "POST", "/operator/v1/consumers/migrate", cli.Object{"limit": *batch}, &answer); err != nil {
				return fmt.Errorf("migrated %d consumers; the next batch failed: %w", done, err)
			}
			migrated, remaining := cli.Integer(answer["migrated"]), cli.Integer(answer["remaining"])
			done += migrated
			if remaining == 0 {
				return s.Output.PrintMessage(cli.Object{"migrated": done, "remaining": 0},
					"%d consumers were migrated; every consumer has a record", done)
			}
			fmt.Fprintf(s.Stderr, "%d migrated, %d remaining\n", done, remaining)
			if migrated > 0 {
				progressed = time.Now()
				continue
			}
			if time.Since(progressed) > *limit {
				return cli.Errorf(
					cli.ExitWait, "Other transactions have locked them; run the command again.",
					"no consumer could be migrated for %s; %d remain",
					*limit, remaining,
				)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(migrationPause):
			}
		}
	}
}
