package server_test

import (
	"strings"
	"testing"

	"berth/internal/server/servertest"
)

func TestQuota_OfAnUnknownResourceIsRefused(t *testing.T) {
	t.Parallel()
	for setting, known := range map[string]string{"BERTH_QUOTA": "network, subnet, port", "BERTH_LEASE_QUOTA": "lease, reservation, reservation_per_lease"} {
		err := servertest.OpenError(t, setting+"=server=1")
		if err == nil ||
			!strings.Contains(err.Error(), setting+`: unknown resource "server"; the resources are `+known) {
			t.Errorf("start with %s=server=1: got error %v, want one that names the resources %s",
				setting, err, known)
		}
	}
}
