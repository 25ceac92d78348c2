package cloud_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"berth/internal/cloud"
	"berth/internal/notify/notifytest"
)

// The project of a reservation can change the description and the tags of its floating IPs. It would keep the
// floating IP, and the next reservation of the address would fail. After a lost answer, the ID is not known.
func TestDeprovision_RemovesAReservedFloatingIPThatItsProjectHasRenamed(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	put := func(ip, project, description string) notifytest.FloatingIP {
		f := notifytest.FloatingIP{Network: net.String(), IP: ip, Project: project, Description: description}
		s.neutron.PutFloatingIP(f)
		return f
	}
	put("172.24.4.10", "red", "mine")
	kept := []notifytest.FloatingIP{
		put("172.24.4.11", "blue", "of another project"),
		put("172.24.4.12", "red", "of the next reservation of the address"),
		put("172.24.4.13", "red", "not reserved"),
	}
	c := addressesClaim("172.24.4.10", "172.24.4.11", "172.24.4.12")

	s.remove(c) // after a start that was abandoned; another reservation may have the addresses now
	if all := s.neutron.FloatingIPs(); len(all) != 4 {
		t.Errorf("floating IPs after an abandoned start: got %+v, want all four", all)
	}
	c.Created = c.FloatingIPs[:2] // the next reservation has taken over the third address
	s.remove(c)
	if d := cmp.Diff(kept, s.neutron.FloatingIPs(), cmpopts.IgnoreFields(notifytest.FloatingIP{}, "ID")); d != "" {
		t.Errorf("floating IPs after the end of the lease (-want +got):\n%s", d)
	}
}

// The IDs of floating IPs are stored, because a project can change everything else of its floating IPs.
func TestProvision_TakesBackARenamedFloatingIPByItsID(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := addressesClaim("172.24.4.10", "172.24.4.11")
	c.FloatingIPIDs = s.apply(c).FloatingIPIDs
	want := s.neutron.FloatingIPs()
	s.neutron.RenameFloatingIPs("mine")
	if d := cmp.Diff(c.FloatingIPIDs, s.apply(c).FloatingIPIDs); d != "" {
		t.Errorf("IDs after the second Provision (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want, s.neutron.FloatingIPs(), cmpopts.IgnoreFields(notifytest.FloatingIP{}, "Description")); d != "" {
		t.Errorf("floating IPs after the second Provision (-want +got):\n%s", d)
	}

	s.neutron.RenameFloatingIPs("mine again")
	c.FloatingIPs = c.FloatingIPs[:1]
	s.apply(c)
	if all := s.neutron.FloatingIPs(); len(all) != 1 || all[0].IP != "172.24.4.10" {
		t.Errorf("floating IPs after a reservation gave up one of two addresses: got %+v, want the other one", all)
	}
}

// A leftover of a deleted lease has no addresses, and another reservation may have them now.
func TestDeprovision_OfALeftoverDeletesOnlyTheFloatingIPsWithItsIDs(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := addressesClaim("172.24.4.10")
	c.FloatingIPIDs = s.apply(c).FloatingIPIDs
	foreign := notifytest.FloatingIP{Network: net.String(), IP: "172.24.4.11", Project: "red", Description: "mine"}
	s.neutron.PutFloatingIP(foreign)
	s.neutron.RenameFloatingIPs("mine")
	c.FloatingIPs = nil
	s.remove(c)
	if all := s.neutron.FloatingIPs(); len(all) != 1 || all[0].IP != foreign.IP {
		t.Errorf("floating IPs after the removal: got %+v, want only the project's own one", all)
	}
}

// Deprovision finds the floating IPs of a failed Provision, too.
func TestProvision_ReturnsTheFloatingIPsThatItCreatedBeforeAnError(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	s.neutron.PutFloatingIP(notifytest.FloatingIP{Network: net.String(), IP: "172.24.4.11", Project: "blue"})
	created, err := s.Provision(t.Context(), addressesClaim("172.24.4.10", "172.24.4.11"))
	if !errors.Is(err, cloud.ErrInUse) || len(created.FloatingIPIDs) != 1 ||
		created.FloatingIPIDs[0] != s.neutron.FloatingIPs()[0].ID {
		t.Errorf("Provision with an address in use: got %+v, error %v; want the ID of the first floating IP and ErrInUse",
			created, err)
	}
}

// Neutron does not delete a floating IP that has port forwardings.
func TestDeprovision_PortForwardingsKeepNoFloatingIP(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := addressesClaim("172.24.4.10", "172.24.4.11")
	c.FloatingIPIDs = s.apply(c).FloatingIPIDs
	foreign := notifytest.FloatingIP{Network: net.String(), IP: "172.24.4.12", Project: "red"}
	for _, f := range append(s.neutron.FloatingIPs(), foreign) {
		s.neutron.AddPortForwardings(f, uuid.NewString(), uuid.NewString())
	}
	c.Created = c.FloatingIPs
	s.remove(c)
	if all := s.neutron.FloatingIPs(); len(all) != 1 || all[0].IP != foreign.IP {
		t.Errorf("floating IPs after the removal: got %+v, want only the one that is not reserved", all)
	}
	if all := s.neutron.PortForwardings(); len(all) != 2 {
		t.Errorf("port forwardings after the removal: got %+v, want the two of the other floating IP", all)
	}
}

// Only a late attempt of a reservation that has ended creates a floating IP at an address at which the next
// reservation of the same project has begun to create its own. The next reservation keeps it.
func TestDeprovision_OfALeftoverDeletesNoFloatingIPOfTheNextReservation(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	late, next := addressesClaim("172.24.4.10"), addressesClaim("172.24.4.10")
	next.ID = uuid.New()
	late.FloatingIPIDs = s.apply(late).FloatingIPIDs
	if err := s.CheckFree(t.Context(), next); !errors.Is(err, cloud.ErrInUse) {
		t.Errorf("CheckFree of an address in use: got %v, want ErrInUse", err)
	}
	next.Created = next.FloatingIPs
	s.apply(next)
	late.CreatedByOthers = next.FloatingIPs
	s.remove(late)
	if all := s.neutron.FloatingIPs(); len(all) != 1 {
		t.Errorf("floating IPs after the removal of the leftover: got %+v, want the one of the next reservation", all)
	}
	s.remove(next)
	if all := s.neutron.FloatingIPs(); len(all) != 0 {
		t.Errorf("floating IPs after the end of the next reservation: got %+v, want none", all)
	}
}
