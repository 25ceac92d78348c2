package neutron

import (
	"context"

	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/portstore"
)

// TrunkReader reads trunks for pages outside the API. The policy rules of the API decide what a caller sees.
type TrunkReader struct {
	trunks resource[network.Trunk, trunkChange]
	rules  *policy.Policy
}

// NewTrunkReader returns a TrunkReader with the given policy rules, which must have the defaults in Policy.
func NewTrunkReader(s *portstore.Store, rules *policy.Policy) TrunkReader {
	return TrunkReader{trunks(s), rules}
}

// MayRead reports whether the caller may see any trunk.
func (t TrunkReader) MayRead(c identity.Caller) bool {
	return newAccess(t.rules, c).forSome("get_trunk") != policy.Denied
}

// List lists the trunks that the response to GET /v2.0/trunks contains for the caller. The names of hosts are
// hidden from a caller who may not see the hosts of ports.
func (t TrunkReader) List(ctx context.Context, c identity.Caller, l db.Listing) ([]network.Trunk, error) {
	a := newAccess(t.rules, c)
	found, err := t.trunks.listVisible(context.WithValue(ctx, accessKey{}, a), l)
	for i := range found {
		found[i] = withVisibleTrunkHosts(found[i], a)
	}
	return found, err
}
