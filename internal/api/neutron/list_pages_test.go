package neutron_test

import (
	"slices"
	"testing"

	"berth/internal/api/neutron"
)

// TestList_ObjectsDeletedWhileItIsReadDoNotEndIt lists more ports than a page has, and deletes ports after
// the first page, among them the last port of this page.
func TestList_ObjectsDeletedWhileItIsReadDoNotEndIt(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	for range 4 * neutron.PageItems {
		c.port(net, "")
	}
	all := ids(c.must(200, "GET", "/v2.0/ports", ""), "ports")
	if !slices.IsSorted(all) || len(all) < 4*neutron.PageItems {
		t.Fatalf("list of ports: got %v, want %d ports or more in the order of their IDs", all, 4*neutron.PageItems)
	}
	shown, hidden := all[neutron.PageItems-1], all[2*neutron.PageItems]
	deleted := []string{shown, hidden}
	got, err := neutron.ReadPorts(t.Context(), c.store.Network, func() {
		for _, id := range deleted {
			c.must(204, "DELETE", "/v2.0/ports/"+id, "")
		}
		deleted = nil
	})
	if want := slices.DeleteFunc(all, func(id string) bool { return id == hidden }); err != nil || !slices.Equal(got, want) {
		t.Errorf("list of ports: got %v and the error %v, want the ports that existed when their page was read: %v", got, err, want)
	}
}
