package cloud_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"berth/internal/notify/notifytest"
)

// The project of a reservation can change the description and the tags of its floating IPs. It would keep the
// floating IP, and the next reservation of the address would fail.
func TestDeprovision_RemovesAReservedFloatingIPThatItsProjectHasRenamed(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	next := uuid.New()
	put := func(ip, project, description string) notifytest.FloatingIP {
		f := notifytest.FloatingIP{Network: net.String(), IP: ip, Project: project, Description: description}
		s.neutron.PutFloatingIP(f)
		return f
	}
	put("172.24.4.10", "red", "mine")
	kept := []notifytest.FloatingIP{
		put("172.24.4.11", "blue", "of another project"),
		put("172.24.4.12", "red", "reservation:"+next.String()), // the next reservation has started
		put("172.24.4.13", "red", "not reserved"),
	}
	c := addressesClaim("172.24.4.10", "172.24.4.11", "172.24.4.12")
	c.OtherHolders = []uuid.UUID{next}

	s.remove(c) // after a start that was abandoned; another reservation may have the addresses now
	if all := s.neutron.FloatingIPs(); len(all) != 4 {
		t.Errorf("floating IPs after an abandoned start: got %+v, want all four", all)
	}
	c.Ending = true
	s.remove(c)
	if d := cmp.Diff(kept, s.neutron.FloatingIPs(), cmpopts.IgnoreFields(notifytest.FloatingIP{}, "ID")); d != "" {
		t.Errorf("floating IPs after the end of the lease (-want +got):\n%s", d)
	}
}
