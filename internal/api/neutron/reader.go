package neutron

import (
	"context"

	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/portstore"
)

// A PortReader or a TrunkReader reads objects for pages outside the API. The policy rules of the API decide
// what a caller sees.
type (
	PortReader  = reader[network.Port, portChange]
	TrunkReader = reader[network.Trunk, trunkChange]
)

type reader[N, C any] struct {
	objects resource[N, C]
	rules   *policy.Policy
	rule    string             // decides which objects the caller sees
	view    func(N, *access) N // hides the names of hosts from a caller who may not see them
}

// NewPortReader returns a PortReader with the given policy rules, which must have the defaults in Policy.
func NewPortReader(s *portstore.Store, rules *policy.Policy) PortReader {
	return PortReader{ports(s), rules, "get_port", withVisibleHosts}
}

// NewTrunkReader returns a TrunkReader with the given policy rules, which must have the defaults in Policy.
func NewTrunkReader(s *portstore.Store, rules *policy.Policy) TrunkReader {
	return TrunkReader{trunks(s), rules, "get_trunk", withVisibleTrunkHosts}
}

// MayRead reports whether the caller may see any of the objects.
func (r reader[N, C]) MayRead(c identity.Caller) bool {
	return newAccess(r.rules, c).forSome(r.rule) != policy.Denied
}

// List lists the objects that the API's response to a list request contains for the caller. The names of
// hosts are hidden from a caller who may not see the hosts of ports.
func (r reader[N, C]) List(ctx context.Context, c identity.Caller, l db.Listing) ([]N, error) {
	a := newAccess(r.rules, c)
	found, err := r.objects.listVisible(context.WithValue(ctx, accessKey{}, a), l)
	for i := range found {
		found[i] = r.view(found[i], a)
	}
	return found, err
}
