package harness

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"berth/internal/odl/odltest"
)

// injectFault applies a fault to every request that the controller receives, until ClearFaults is called.
func injectFault(ctx context.Context, controller string, f odltest.Fault) error {
	f.Times = math.MaxInt32
	return NewAPI(controller).Post(ctx, "/_control/faults", f, nil)
}

// DelayAnswers delays every answer of the controller. If the parameter `delay` is 0, DelayAnswers does
// nothing.
func DelayAnswers(ctx context.Context, controller string, delay time.Duration) error {
	if delay == 0 {
		return nil
	}
	return injectFault(ctx, controller, odltest.Fault{DelayMS: int(delay.Milliseconds())})
}

// ResetConnections makes the controller reset every TCP connection.
func (s *Stack) ResetConnections(ctx context.Context) error {
	return injectFault(ctx, s.Stubs.ODL, odltest.Fault{Break: odltest.BreakReset})
}

// ClearFaults ends all faults of the controller.
func ClearFaults(ctx context.Context, controller string) error {
	return NewAPI(controller).Send(ctx, http.MethodDelete, "/_control/faults", nil, nil)
}

// controllerObjects returns all objects of the controller.
func (s *Stack) controllerObjects(ctx context.Context) (controllerObjects, error) {
	var c controllerObjects
	err := NewAPI(s.Stubs.ODL).Send(ctx, http.MethodGet, "/_control/objects", nil, &c)
	return c, err
}

// ControllerNetwork returns the name and the revision of a network at the controller.
func (s *Stack) ControllerNetwork(
	ctx context.Context,
	network string,
) (name string, revision int, err error) {
	var answer struct {
		Network struct {
			Name     string
			Revision int `json:"revision_number"`
		}
	}
	if err := NewAPI(s.Stubs.ODL).Send(ctx, http.MethodGet, odltest.BasePath+"/networks/"+network, nil, &answer); err != nil {
		return "", 0, fmt.Errorf("read the network at the controller: %w", err)
	}
	return answer.Network.Name, answer.Network.Revision, nil
}

// AwaitMirrored waits until all journal entries are finished and then checks the controller's objects.
func (s *Stack) AwaitMirrored(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, WaitTimeout, ErrTimeout)
	defer cancel()
	for {
		var left int
		var example *string
		err := s.Rows.QueryRow(ctx, `
			select count(*), min(concat('entry ', seq, ' is ', state, ': ', last_error))
			from journal_entry
			where finished_at is null`).Scan(&left, &example)
		if err != nil {
			return fmt.Errorf("count unfinished journal entries: %w", err)
		}
		if left == 0 {
			return s.checkMirror(ctx)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%d journal entries are unfinished: %s", left, *example)
		}
		Pause(ctx, 20*time.Millisecond)
	}
}

// checkMirror compares the number of objects at the controller with the number of journal entries that create
// an object.
func (s *Stack) checkMirror(ctx context.Context) error {
	objects, err := s.controllerObjects(ctx)
	if err != nil {
		return err
	}
	var created int
	if err := s.Rows.QueryRow(ctx, `
		select count(*)
		from journal_entry e
		where e.operation = 'create' and not exists (
			select from journal_entry d where d.object_id = e.object_id and d.object_type = e.object_type and d.operation = 'delete')`).Scan(&created); err != nil {
		return err
	}
	return objects.check(created)
}

// controllerObjects holds the objects of the OpenDaylight stub, and the requests that the stub received in a
// wrong order.
type controllerObjects struct {
	Objects    []odltest.Record `json:"objects"`
	Violations []string         `json:"violations"`
}

// check returns an error if the OpenDaylight stub does not have exactly `created` objects. check also returns
// an error if the stub did not receive exactly one create request for each object, or if it received the
// create request of an object before the create requests of the object's parents.
func (c controllerObjects) check(created int) error {
	if len(c.Violations) > 0 {
		return fmt.Errorf("the controller received requests out of order: %s",
			strings.Join(c.Violations, "; "))
	}
	present := 0
	for _, o := range c.Objects {
		if o.Object != nil {
			present++
		}
		if o.Creates != 1 {
			return fmt.Errorf("the controller created %s %s %d times, want once", o.Type, o.ID, o.Creates)
		}
	}
	if created != present {
		return fmt.Errorf("the database has %d objects, the controller has %d", created, present)
	}
	return nil
}
