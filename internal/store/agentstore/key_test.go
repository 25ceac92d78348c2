package agentstore_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"berth/internal/store/agentstore"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

func publicKey(seed string) ed25519.PublicKey {
	return ed25519.NewKeyFromSeed([]byte(fmt.Sprintf("%-*s", ed25519.SeedSize, seed))).Public().(ed25519.PublicKey)
}

func TestPublicKeys_OfTheHostUntilRevoked(t *testing.T) {
	t.Parallel()
	s := storetest.New(t).Agents
	first, err := s.AddKey(t.Context(), "cmp-1", publicKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	for host, seed := range map[string]string{"cmp-1": "b", "cmp-2": "c"} {
		if _, err := s.AddKey(t.Context(), host, publicKey(seed)); err != nil {
			t.Fatal(err)
		}
	}
	for _, host := range []string{"cmp-1", "cmp-2"} {
		if _, err := s.AddKey(t.Context(), host, publicKey("a")); !errors.Is(err, db.ErrConflict) {
			t.Errorf("register a known key for %s: got error %v, want ErrConflict", host, err)
		}
	}
	if _, err := s.Revoke(t.Context(), agentstore.Token, first.ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("revoke a key as if it were a token: got error %v, want ErrNotFound", err)
	}
	if _, err := s.Revoke(t.Context(), agentstore.Key, first.ID); err != nil {
		t.Fatal(err)
	}

	keys, err := s.PublicKeys(t.Context(), []string{"cmp-1", "cmp-3", "cmp-1"})

	if err != nil || len(keys) != 1 || len(keys["cmp-1"]) != 1 || !keys["cmp-1"][0].Equal(publicKey("b")) {
		t.Errorf(
			"keys of cmp-1 and cmp-3: got %v, error %v, want only the key of cmp-1 that is not revoked",
			keys,
			err,
		)
	}
}

func TestAddKey_LimitsTheKeysOfAHost(t *testing.T) {
	t.Parallel()
	s := storetest.New(t).Agents
	var registered atomic.Int32
	var clients sync.WaitGroup
	for i := range 20 {
		clients.Go(func() {
			switch _, err := s.AddKey(t.Context(), "cmp-1", publicKey(strings.Repeat("k", i+1))); {
			case err == nil:
				registered.Add(1)
			case !errors.Is(err, db.ErrConflict):
				t.Errorf("register a key: got error %v, want none or ErrConflict", err)
			}
		})
	}
	clients.Wait()
	if n := registered.Load(); n != 8 {
		t.Errorf("20 clients register a key each at the same time: %d were registered, want 8", n)
	}
}
