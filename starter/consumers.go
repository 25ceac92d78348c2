package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

const migrateConsumersHelp = `Allocations that were imported from an old Placement may belong to consumers of which there is no record. This
gives each of them the project and the user of BERTH_INCOMPLETE_CONSUMER_PROJECT_ID and _USER_ID, batch by batch, while
others read and write. It may be stopped at any time: what is done stays, and the next run goes on from there.`

// unhurried is how long it waits for others who write the last consumers without a record.
const unhurried = 200 * time.Millisecond

func migrateConsumers(f *pflag.FlagSet) action {
	batch := f.Int("batch", 1000, "so many consumers at once")
	return func(ctx context.Context, s *session, _ []string) error {
		for done := int64(0); ; {
			var answer object
			if err := s.api.do(ctx, "POST", "/operator/v1/consumers/migrate", object{"limit": *batch}, &answer); err != nil {
				return fmt.Errorf("after %d consumers, which stay migrated: %w", done, err)
			}
			migrated, remaining := integer(answer["migrated"]), integer(answer["remaining"])
			done += migrated
			if remaining == 0 {
				return s.out.say(object{"migrated": done, "remaining": 0}, "%d consumers were migrated; every consumer has a record", done)
			}
			fmt.Fprintf(s.stderr, "%d migrated, %d to go\n", done, remaining)
			if migrated > 0 {
				continue
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(unhurried):
			}
		}
	}
}
