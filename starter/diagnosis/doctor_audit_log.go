package diagnosis

import (
	"context"
	"fmt"
	"time"

	"berth/starter/cli"
)

const (
	// sealTime is the time within which a process with the role relay seals a waiting record of the audit
	// log. It usually takes a second.
	sealTime = 5 * time.Second
	// sealPoll is the pause between two reads of the end of the audit log.
	sealPoll = 500 * time.Millisecond
)

// auditLogEnd is the end of the audit log.
type auditLogEnd struct {
	Head    struct{ Sequence int64 } // the newest sealed record
	Waiting int64                    // number of records that are not sealed yet
}

func readAuditLogEnd(ctx context.Context, s *cli.Session) (end auditLogEnd, err error) {
	err = readAPI(ctx, s, "/operator/v1/audit?limit=1", &end)
	return end, err
}

// checkAuditLog returns a check that waiting records of the audit log are sealed within the given time. A
// busy log always has records that wait, so it suffices that any record is sealed.
func checkAuditLog(within time.Duration) func(context.Context, *cli.Session) (string, error) {
	return func(ctx context.Context, s *cli.Session) (string, error) {
		deadline := time.Now().Add(within)
		first, err := readAuditLogEnd(ctx, s)
		for now := first; err == nil; now, err = readAuditLogEnd(ctx, s) {
			switch {
			case now.Waiting == 0:
				return "every record is sealed", nil
			case now.Head != first.Head:
				return fmt.Sprintf("records are being sealed; %d wait", now.Waiting), nil
			case !time.Now().Before(deadline):
				return "", cli.Errorf(
					cli.ExitUnavailable,
					"Start a process with the role relay. The log of such a process says why it cannot seal records.",
					"%d records wait, and none was sealed within %s",
					now.Waiting,
					within,
				)
			}
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(sealPoll):
			}
		}
		return "", err
	}
}
