package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"berth/internal/odl/odltest"
)

// disturb lets that happen to every request to a controller from now on.
func disturb(ctx context.Context, controller string, f odltest.Fault) error {
	f.Times = math.MaxInt32
	return newAPI(controller).post(ctx, "/_control/faults", f, nil)
}

// slow lets a controller take so long for each answer; nothing is no disturbance.
func slow(ctx context.Context, controller string, by time.Duration) error {
	if by == 0 {
		return nil
	}
	return disturb(ctx, controller, odltest.Fault{DelayMS: int(by.Milliseconds())})
}

// down lets a controller break every connection.
func (s *stack) down(ctx context.Context) error {
	return disturb(ctx, s.standIns.ODL, odltest.Fault{Break: odltest.BreakReset})
}

// heal ends all disturbances.
func heal(ctx context.Context, controller string) error {
	return newAPI(controller).send(ctx, http.MethodDelete, "/_control/faults", nil, nil)
}

// shows tells what the controller has of a network.
func (s *stack) shows(ctx context.Context, network string) (name string, revision int, err error) {
	var got struct {
		Network struct {
			Name     string
			Revision int `json:"revision_number"`
		}
	}
	if err := newAPI(s.standIns.ODL).send(ctx, http.MethodGet, odltest.BasePath+"/networks/"+network, nil, &got); err != nil {
		return "", 0, fmt.Errorf("the controller's network: %w", err)
	}
	return got.Network.Name, got.Network.Revision, nil
}
