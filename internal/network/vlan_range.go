package network

import "slices"

// MaxVLAN is the largest VLAN ID (IEEE 802.1Q).
const MaxVLAN = 4094

// VLANRange is a range of VLAN IDs on a physical network, both ends included. A new VLAN network without a
// segmentation ID gets an unused VLAN ID from a VLANRange.
type VLANRange struct {
	PhysicalNetwork string
	Low, High       int
}

// VLANRanges are the ranges on all physical networks with VLANs. If VLANRanges is empty, every physical
// network has all VLAN IDs.
type VLANRanges []VLANRange

// On returns the ranges on the physical network. If the physical network is "", On returns the ranges on all
// physical networks.
func (r VLANRanges) On(physicalNetwork string) VLANRanges {
	switch {
	case physicalNetwork == "":
		return r
	case len(r) == 0:
		return VLANRanges{{physicalNetwork, 1, MaxVLAN}}
	default:
		return slices.DeleteFunc(slices.Clone(r),
			func(one VLANRange) bool { return one.PhysicalNetwork != physicalNetwork })
	}
}
