package identity_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"berth/internal/identity"
)

func TestTokenLimit_RefusesOnlyUnknownTokensOfTheAddress(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	l := identity.NewTokenLimit()
	l.SetClock(func() time.Time { return now })
	revoked := false
	check := func(address, token string, want error) {
		t.Helper()
		ctx := identity.WithAddress(context.Background(), netip.MustParseAddr(address))
		_, err := l.Check(ctx, token, func() (identity.Caller, error) {
			if token != "valid" && token != "new" || token == "valid" && revoked {
				return identity.Caller{}, identity.ErrUnauthenticated
			}
			return identity.Caller{AgentHost: "cmp-1"}, nil
		})
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("check the token %s of %s: got error %v, want %v", token, address, err, want)
		}
	}
	check("192.0.2.1", "valid", nil)
	for i := range 21 {
		check("192.0.2.1", fmt.Sprintf("invalid-%d", i), identity.ErrUnauthenticated)
	}
	check("192.0.2.1", "invalid-0", identity.ErrTooManyAttempts)
	check("192.0.2.1", "new", identity.ErrTooManyAttempts)
	check("192.0.2.1", "valid", nil)
	check("192.0.2.2", "new", nil)
	check("192.0.2.1", "new", nil) // it is known now
	revoked = true
	check("192.0.2.1", "valid", identity.ErrUnauthenticated)
	check("192.0.2.1", "valid", identity.ErrTooManyAttempts)
	now = now.Add(time.Minute)
	check("192.0.2.1", "invalid-0", identity.ErrUnauthenticated)
}
