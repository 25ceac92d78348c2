package networkstore

import (
	"context"
	"fmt"

	"berth/internal/network"
	"berth/internal/store/db"
)

// allocateSegment gives a new network an unused segmentation ID if the type of the network needs one and the
// request does not name one.
func allocateSegment(ctx context.Context, tx *Transaction, n network.Network) (network.Network, error) {
	switch {
	case n.Type == network.VLAN:
		return allocateVLAN(ctx, tx, n)
	case n.Type == network.VXLAN && n.Segment == nil:
		vni, err := allocateVNI(ctx, tx)
		n.Segment = &vni
		return n, err
	default:
		return n, nil
	}
}

// allocateVLAN gives a new VLAN network a random unused VLAN, if the request does not name one. A lock
// serializes the creations of VLAN networks, so that no concurrent request takes the VLAN that allocateVLAN
// has found.
func allocateVLAN(ctx context.Context, tx *Transaction, n network.Network) (network.Network, error) {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('VLANs of networks', 0))`); err != nil {
		return n, fmt.Errorf("lock VLANs: %w", err)
	}
	if n.Segment != nil {
		return n, nil
	}
	var names []string
	var low, high []int
	named, segments := network.NamedSegments(tx.networkDrafts, network.VLAN)
	for _, r := range tx.config.VLANs.On(n.PhysicalNetwork) {
		names, low, high = append(names, r.PhysicalNetwork), append(low, r.Low), append(high, r.High)
	}
	err := tx.QueryRow(ctx, `
		select r.physical_network, vlan.id
		from unnest($1::text[], $2::integer[], $3::integer[]) with ordinality as r (physical_network, low, high, place),
			generate_series(r.low, r.high) as vlan (id)
		where not exists (select from network n where n.type = 'vlan' and n.physical_network = r.physical_network and n.segment = vlan.id)
			and not exists (select from unnest($4::text[], $5::integer[]) as named (physical_network, vlan) where named.physical_network = r.physical_network and named.vlan = vlan.id)
		order by r.place, random()
		limit 1`, names, low, high, named, segments).Scan(&n.PhysicalNetwork, &n.Segment)
	if db.NoRows(err) {
		return n, network.Faultf(network.NoNetworkAvailable,
			"Unable to create the network. No project network is available for allocation.")
	}
	if err != nil {
		return n, fmt.Errorf("allocate VLAN: %w", err)
	}
	return n, nil
}

// allocateVNI returns the next unused VNI.
func allocateVNI(ctx context.Context, tx *Transaction) (int, error) {
	_, named := network.NamedSegments(tx.networkDrafts, network.VXLAN)
	for {
		var vni int
		var taken bool
		if err := tx.QueryRow(ctx, `
			with next as (select nextval('network_vni')::integer as vni)
			select vni, vni = any($1) or exists (select from network where type = 'vxlan' and segment = vni)
			from next`, named).Scan(&vni, &taken); err != nil {
			return 0, fmt.Errorf("allocate VNI: %w", err)
		}
		if !taken {
			return vni, nil
		}
	}
}
