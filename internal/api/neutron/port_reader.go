package neutron

import (
	"context"

	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/portstore"
)

// PortReader reads ports for pages outside the API. The policy rules of the API decide what a caller sees.
type PortReader struct {
	ports resource[network.Port, portChange]
	rules *policy.Policy
}

// NewPortReader returns a PortReader with the given policy rules, which must have the defaults in Policy.
func NewPortReader(s *portstore.Store, rules *policy.Policy) PortReader {
	return PortReader{ports(s), rules}
}

// MayRead reports whether the caller may see any port.
func (p PortReader) MayRead(c identity.Caller) bool {
	return newAccess(p.rules, c).forSome("get_port") != policy.Denied
}

// List lists the ports that the response to GET /v2.0/ports contains for the caller. The names of hosts are
// hidden from a caller who may not see the host of a port.
func (p PortReader) List(ctx context.Context, c identity.Caller, l db.Listing) ([]network.Port, error) {
	a := newAccess(p.rules, c)
	found, err := p.ports.listVisible(context.WithValue(ctx, accessKey{}, a), l)
	for i := range found {
		found[i] = withVisibleHosts(found[i], a)
	}
	return found, err
}
