package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"berth/internal/odl/odltest"
)

// injectFault applies a fault to every request that the controller receives, until clearFaults is called.
func injectFault(ctx context.Context, controller string, f odltest.Fault) error {
	f.Times = math.MaxInt32
	return newAPI(controller).post(ctx, "/_control/faults", f, nil)
}

// delayAnswers delays every answer of the controller. If the parameter `delay` is 0, delayAnswers does
// nothing.
func delayAnswers(ctx context.Context, controller string, delay time.Duration) error {
	if delay == 0 {
		return nil
	}
	return injectFault(ctx, controller, odltest.Fault{DelayMS: int(delay.Milliseconds())})
}

// resetConnections makes the controller reset every TCP connection.
func (s *stack) resetConnections(ctx context.Context) error {
	return injectFault(ctx, s.stubs.ODL, odltest.Fault{Break: odltest.BreakReset})
}

// clearFaults ends all faults of the controller.
func clearFaults(ctx context.Context, controller string) error {
	return newAPI(controller).send(ctx, http.MethodDelete, "/_control/faults", nil, nil)
}

// controllerObjects returns all objects of the controller.
func (s *stack) controllerObjects(ctx context.Context) (controllerObjects, error) {
	var c controllerObjects
	err := newAPI(s.stubs.ODL).send(ctx, http.MethodGet, "/_control/objects", nil, &c)
	return c, err
}

// controllerNetwork returns the name and the revision of a network at the controller.
func (s *stack) controllerNetwork(
	ctx context.Context,
	network string,
) (name string, revision int, err error) {
	var answer struct {
		Network struct {
			Name     string
			Revision int `json:"revision_number"`
		}
	}
	if err := newAPI(s.stubs.ODL).send(ctx, http.MethodGet, odltest.BasePath+"/networks/"+network, nil, &answer); err != nil {
		return "", 0, fmt.Errorf("read the network at the controller: %w", err)
	}
	return answer.Network.Name, answer.Network.Revision, nil
}
