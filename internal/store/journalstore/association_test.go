package journalstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/journal"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// vpnUpdate describes an entry of a BGPVPN: its operation, its ID and its lists.
func vpnUpdate(t *testing.T, e journal.Entry) string {
	t.Helper()
	var lists struct{ Networks, Routers []string }
	if err := json.Unmarshal(e.Data, &lists); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s %s %v %v",
		e.Operation, e.Object.Type, e.Object.ID, lists.Networks, lists.Routers)
}

func TestRecordChanges_AssociationIsAnUpdateOfItsBGPVPN(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	keep(t, s, foreign(t, "create bgpvpn V", `"name":"v"`))
	for _, tt := range []struct{ what, attributes, want string }{
		{"create bgpvpn_network_association a", `"bgpvpn_id":"V","network_id":"n"`, "update bgpvpn V [n] []"},
		{"create bgpvpn_network_association b", `"bgpvpn_id":"V","network_id":"m"`, "update bgpvpn V [n m] []"},
		{"create bgpvpn_router_association c", `"bgpvpn_id":"V","router_id":"r"`, "update bgpvpn V [n m] [r]"},
		{"update bgpvpn V", `"name":"w"`, "update bgpvpn V [n m] [r]"},
		{"delete bgpvpn_network_association a", "", "update bgpvpn V [m] [r]"},
		{"update bgpvpn V", `"networks":[],"routers":["r","q"]`, "update bgpvpn V [] [r q]"},
		{"delete bgpvpn_network_association b", "", "update bgpvpn V [] [r q]"},
	} {
		entries := keep(t, s, foreign(t, tt.what, tt.attributes))
		if len(entries) != 1 {
			t.Fatalf("%s: got %d entries, want 1", tt.what, len(entries))
		}
		if got := vpnUpdate(t, entries[0]); got != tt.want {
			t.Errorf("%s: got the entry %q, want %q", tt.what, got, tt.want)
		}
	}

	// The deletion of a BGPVPN also deletes its associations.
	entries := keep(t, s, foreign(t, "delete bgpvpn V", ""))
	if len(entries) != 1 || entries[0].Operation != journal.Delete {
		t.Fatalf("delete a BGPVPN with an association: got the entries %v, want one delete", entries)
	}
	for _, what := range []string{"delete bgpvpn_router_association c", "delete bgpvpn_network_association b"} {
		_, err := s.Journal.RecordChanges(t.Context(), []journal.Change{foreign(t, what, "")})
		if !errors.Is(err, db.ErrNotFound) {
			t.Errorf("%s after the deletion of the BGPVPN: got error %v, want %v", what, err, db.ErrNotFound)
		}
	}
}

func TestRecordChanges_AssociationRevisionGrows(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	var revisions []int64
	for _, c := range []journal.Change{foreign(t, "create bgpvpn V", ""),
		foreign(t, "create bgpvpn_network_association a", `"bgpvpn_id":"V","network_id":"n"`), foreign(t, "delete bgpvpn_network_association a", "")} {
		var data struct {
			Revision int64 `json:"revision_number"`
		}
		if err := json.Unmarshal(keep(t, s, c)[0].Data, &data); err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, data.Revision)
	}
	if revisions[0] >= revisions[1] || revisions[1] >= revisions[2] {
		t.Errorf(
			"revision numbers of a BGPVPN and of the changes of its association: got %v, want them to grow",
			revisions,
		)
	}
}

func TestRecordChanges_AssociationWaitsForItsObjects(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	network, vpn := keep(t, s, foreign(t, "create router r", ""))[0].Seq, keep(t, s, foreign(t, "create bgpvpn V", ""))[0].Seq
	added := keep(t, s, foreign(t, "create bgpvpn_router_association a", `"bgpvpn_id":"V","router_id":"r"`))[0].Seq
	if d := cmp.Diff([]int64{network, vpn}, waitsFor(t, s, added)); d != "" {
		t.Errorf("blockers of the association's entry (-want +got):\n%s", d)
	}
	removed := keep(t, s, foreign(t, "delete bgpvpn_router_association a", ""))[0].Seq
	deleted := keep(t, s, foreign(t, "delete router r", ""))[0].Seq
	if got := waitsFor(t, s, deleted); !slices.Contains(got, removed) {
		t.Errorf(
			"blockers of the router's delete: got %v, want them to contain entry %d, which removes the association",
			got,
			removed,
		)
	}
}

func TestRecordChanges_AssociationIsRefused(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	keep(t, s, foreign(t, "create bgpvpn V", ""),
		foreign(t, "create bgpvpn_network_association a", `"bgpvpn_id":"V","network_id":"n"`))
	for _, tt := range []struct {
		what, attributes string
		want             error
	}{
		{"create bgpvpn_network_association a", `"bgpvpn_id":"V","network_id":"n"`, db.ErrConflict},
		{"create bgpvpn_network_association b", `"bgpvpn_id":"W","network_id":"n"`, db.ErrNotFound},
		{"delete bgpvpn_router_association a", "", db.ErrNotFound},
	} {
		_, err := s.Journal.RecordChanges(t.Context(), []journal.Change{foreign(t, tt.what, tt.attributes)})
		if !errors.Is(err, tt.want) {
			t.Errorf("%s with %s: got error %v, want %v", tt.what, tt.attributes, err, tt.want)
		}
	}
}
