package diagnosis

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"berth/internal/store/db"
	"berth/starter/cli"
)

// maxClockDifference is the largest accepted difference between two clocks.
const maxClockDifference = 3 * time.Second

// clock is a clock that doctor compares with the clock of this machine.
type clock struct {
	name string
	read func(ctx context.Context, s *cli.Session) (time.Time, error)
}

// checkClocks compares the clocks of PostgreSQL, Temporal and the API with the clock of this machine.
// The start and end of leases and the expiry of heartbeats and tokens depend on these clocks.
func checkClocks(ctx context.Context, s *cli.Session) (string, error) {
	var agree, differ []string
	for _, c := range []clock{{"the API", readAPIClock}, {"PostgreSQL", readDatabaseClock}, {"Temporal", readTemporalClock}} {
		sent := s.Now()
		at, err := c.read(ctx, s)
		if err != nil {
			continue // the check of this service reports the error
		}
		// The service read its clock at an unknown time between the request and the answer. Only a time of
		// its clock that is before the request or after the answer shows a difference.
		ahead := at.Sub(s.Now())
		if behind := at.Sub(sent); ahead < 0 {
			ahead = min(behind, 0)
		}
		if ahead > maxClockDifference || ahead < -maxClockDifference {
			differ = append(differ, fmt.Sprintf("%s by %+.0f s", c.name, ahead.Seconds()))
		} else {
			agree = append(agree, c.name)
		}
	}
	switch {
	case len(differ) > 0:
		return "", cli.Errorf(
			cli.ExitOther,
			"Leases start late or early. Synchronize all machines, for example with chrony.",
			"clocks differ from the clock of this machine: %s",
			strings.Join(differ, ", "),
		)
	case len(agree) == 0:
		return "", fmt.Errorf("%w: no clock can be read", errNotConfigured)
	default:
		return fmt.Sprintf(
			"%s agree with this machine within %s",
			strings.Join(agree, ", "),
			maxClockDifference,
		), nil
	}
}

// readAPIClock reads the clock of the API from the header Date, which has a precision of one second.
func readAPIClock(ctx context.Context, s *cli.Session) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", s.API.BaseURL+"/healthz", nil)
	if err != nil {
		return time.Time{}, err
	}
	res, err := s.API.HTTP.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	_ = res.Body.Close()
	at, err := http.ParseTime(res.Header.Get("Date"))
	return at.Add(time.Second / 2), err
}

func readDatabaseClock(ctx context.Context, s *cli.Session) (time.Time, error) {
	if s.DatabaseURL == "" {
		return time.Time{}, errNotConfigured
	}
	return db.Clock(ctx, s.DatabaseURL)
}

// temporalClockTimeout is the maximum duration of reading the clock of Temporal.
const temporalClockTimeout = 8 * time.Second

// clockQueue is a task queue on which nothing is ever scheduled.
const clockQueue = "starter-doctor-clock"

// readTemporalClock reads the clock of the Temporal server. No method of Temporal's API returns the server's
// time, but the description of a task queue contains the time at which the server got the last poll, so
// readTemporalClock polls an empty task queue.
func readTemporalClock(ctx context.Context, s *cli.Session) (time.Time, error) {
	ctx, cancel := s.WithTimeout(ctx, temporalClockTimeout)
	defer cancel()
	c, err := s.Temporal(ctx)
	if err != nil {
		return time.Time{}, err
	}
	identity := fmt.Sprintf("starter doctor %d", s.Now().UnixNano())
	polling, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.WorkflowService().
			PollActivityTaskQueue(polling, &workflowservice.PollActivityTaskQueueRequest{
				Namespace: s.TemporalNamespace,
				TaskQueue: &taskqueue.TaskQueue{Name: clockQueue, Kind: enums.TASK_QUEUE_KIND_NORMAL},
				Identity:  identity,
			})
	}()
	defer func() {
		stop()
		<-ended
	}()
	for {
		at, err := lastPoll(ctx, c, identity)
		if err != nil || !at.IsZero() {
			return at, err
		}
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// lastPoll returns when the server got the last poll of a poller, or the zero time if the server has got
// none.
func lastPoll(ctx context.Context, c client.Client, identity string) (time.Time, error) {
	d, err := c.DescribeTaskQueue(ctx, clockQueue, enums.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil {
		return time.Time{}, err
	}
	at := slices.IndexFunc(d.GetPollers(),
		func(p *taskqueue.PollerInfo) bool { return p.GetIdentity() == identity })
	if at < 0 {
		return time.Time{}, nil
	}
	return d.GetPollers()[at].GetLastAccessTime().AsTime(), nil
}
