package network

import (
	"net/netip"
	"slices"
)

// AddressPair is a source that a port may send from besides its own: an address or a block of addresses, with a MAC.
type AddressPair struct {
	IP  netip.Prefix `json:"ip"`
	MAC string       `json:"mac"` // empty in a request: the port's own
}

// Block is the pair's address, or its block of addresses if it is more than one.
func (p AddressPair) Block() string {
	if p.IP.IsSingleIP() {
		return p.IP.Addr().String()
	}
	return p.IP.String()
}

// maxAddressPairs is how many address pairs a port may have.
const maxAddressPairs = 10

// DHCPOption is what a port's DHCP agent tells its device besides the usual.
type DHCPOption struct {
	Name      string  `json:"opt_name"`
	Value     *string `json:"opt_value"` // nil in a request: the option is taken away
	IPVersion int     `json:"ip_version"`
}

// pairs are the address pairs of a port with that MAC, or the fault of them.
func pairs(asked []AddressPair, mac string, secured bool) ([]AddressPair, error) {
	if len(asked) > maxAddressPairs {
		return nil, Faultf(AddressPairsExhausted, "The number of allowed address pairs exceeds the maximum %d.", maxAddressPairs)
	}
	if len(asked) > 0 && !secured {
		return nil, Faultf(AddressPairsUnsecured, "Port Security must be enabled in order to have allowed address pairs on a port.")
	}
	all := make([]AddressPair, 0, len(asked))
	for _, p := range asked {
		if p.MAC == "" {
			p.MAC = mac
		}
		if slices.Contains(all, p) {
			return nil, Faultf(DuplicateAddressPair, "Request contains duplicate address pair: mac_address %s ip_address %s.", p.MAC, p.IP)
		}
		all = append(all, p)
	}
	return all, nil
}

// Extras is the port after what the change says about its address pairs and DHCP options, or the fault of that.
func (p Port) Extras(c PortChange) (Port, error) {
	asked := p.AddressPairs
	if c.AddressPairs != nil {
		asked = *c.AddressPairs
	}
	var err error
	if p.AddressPairs, err = pairs(asked, p.MAC, p.PortSecurity); err != nil {
		return p, err
	}
	if c.DHCPOptions != nil {
		p.DHCPOptions = merge(p.DHCPOptions, *c.DHCPOptions)
	}
	return p, nil
}

// merge sets and takes away options; those that the request does not name stay.
func merge(options, asked []DHCPOption) []DHCPOption {
	merged := slices.Clone(options)
	for _, a := range asked {
		same := func(o DHCPOption) bool { return o.Name == a.Name && o.IPVersion == a.IPVersion }
		at := slices.IndexFunc(merged, same)
		switch {
		case a.Value == nil:
			merged = slices.DeleteFunc(merged, same)
		case at >= 0:
			merged[at] = a
		default:
			merged = append(merged, a)
		}
	}
	return merged
}
