package server_test

import (
	"testing"

	"berth/internal/server/servertest"
)

func TestApp_EveryRoleBecomesReadyAndStops(t *testing.T) {
	t.Parallel()
	for _, roles := range []string{"api", "relay", "temporal", "api,relay,temporal"} {
		t.Run(roles, func(t *testing.T) {
			t.Parallel()
			servertest.AwaitReady(t, servertest.StartApp(t, roles))
		})
	}
}
