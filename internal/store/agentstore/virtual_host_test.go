package agentstore_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

func TestVirtualHosts_BelongToOneHostEach(t *testing.T) {
	t.Parallel()
	s := storetest.New(t).Agents
	first, err := s.AddVirtualHost(t.Context(), "cmp-1", "agents-cmp-1", []string{"Open vSwitch agent"})
	if err != nil || first.Host != "cmp-1" || first.Name != "agents-cmp-1" ||
		!slices.Equal(first.AgentTypes, []string{"Open vSwitch agent"}) {
		t.Fatalf("register a virtual host: got %+v, error %v", first, err)
	}
	for _, c := range []struct{ host, name string }{{"cmp-1", "other"}, {"cmp-2", "agents-cmp-1"}} {
		if v, err := s.AddVirtualHost(t.Context(), c.host, c.name, nil); !errors.Is(err, db.ErrConflict) {
			t.Errorf("register %s for the host %s: got %+v, error %v, want db.ErrConflict",
				c.name, c.host, v, err)
		}
	}
	second, err := s.AddVirtualHost(t.Context(), "cmp-2", "agents-cmp-2", nil)
	if err != nil {
		t.Fatal(err)
	}

	list := func(host string) (ids []uuid.UUID) {
		t.Helper()
		all, err := s.VirtualHosts(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range all {
			ids = append(ids, v.ID)
		}
		return ids
	}
	if got := list(""); !slices.Equal(got, []uuid.UUID{first.ID, second.ID}) {
		t.Errorf("list all virtual hosts: got %v, want both in the order of the hosts", got)
	}
	if got := list("cmp-2"); !slices.Equal(got, []uuid.UUID{second.ID}) {
		t.Errorf("list the virtual hosts of cmp-2: got %v, want %s", got, second.ID)
	}
	if host, err := s.RemoveVirtualHost(t.Context(), first.ID); err != nil || host != "cmp-1" {
		t.Errorf("remove the virtual host of cmp-1: got %q, error %v, want cmp-1", host, err)
	}
	if _, err := s.RemoveVirtualHost(t.Context(), first.ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("remove a virtual host twice: got error %v, want db.ErrNotFound", err)
	}
	if got := list(""); !slices.Equal(got, []uuid.UUID{second.ID}) {
		t.Errorf("list the virtual hosts after the removal: got %v, want %s", got, second.ID)
	}
}
