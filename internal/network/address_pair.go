package network

import (
	"net"
	"net/netip"
	"slices"
)

// AddressPair is an entry of a port's allowed_address_pairs: an additional source IP address or prefix, and
// the source MAC that belongs to the address.
type AddressPair struct {
	IP  netip.Prefix `json:"ip"`
	MAC string       `json:"mac"` // empty in a request: the MAC of the port
}

// multicast are the address blocks of all IPv4 and IPv6 multicast addresses.
var multicast = []netip.Prefix{netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("ff00::/8")}

// checkSource returns a fault if the address pair allows a multicast address or a multicast MAC, which no
// packet may have as its source. The blocks 0.0.0.0/0 and ::/0 stay allowed, because clients use them to turn
// off the check of source addresses.
func (p AddressPair) checkSource() error {
	if p.IP.Bits() > 0 && slices.ContainsFunc(multicast, p.IP.Overlaps) {
		return invalidInput(
			"allowed address pair %s contains multicast addresses, which are no source addresses.",
			p.CIDR(),
		)
	}
	if m, err := net.ParseMAC(p.MAC); err == nil && m[0]&1 == 1 {
		return invalidInput(
			"allowed address pair %s has the multicast MAC address %s, which is no source address.",
			p.CIDR(),
			p.MAC,
		)
	}
	return nil
}

// CIDR returns the IP address of the address pair, or the prefix if the pair covers more than one address.
func (p AddressPair) CIDR() string {
	if p.IP.IsSingleIP() {
		return p.IP.Addr().String()
	}
	return p.IP.String()
}

// maxAddressPairs is the maximum number of allowed address pairs of a port.
const maxAddressPairs = 10

// maxDHCPOptions is the maximum number of extra DHCP options of a port.
const maxDHCPOptions = 100

// DHCPOption is an entry of extra_dhcp_opts.
type DHCPOption struct {
	Name      string  `json:"opt_name"`
	Value     *string `json:"opt_value"` // nil in a request: remove the option
	IPVersion int     `json:"ip_version"`
}

// IsClientID reports whether the option is the client ID of the port's device. DHCP agents do not send this
// option to the device: dnsmasq gives the address of the port, and its options, to each device that sends the
// client ID, whatever its MAC is.
func (o DHCPOption) IsClientID() bool { return o.Name == "client-id" || o.Name == "61" }

// checkAddressPairs returns the requested address pairs, or a fault if they are not valid. If a pair has no
// MAC, checkAddressPairs gives it the port's MAC.
func checkAddressPairs(requested []AddressPair, mac string, portSecurity bool) ([]AddressPair, error) {
	if len(requested) > maxAddressPairs {
		return nil, Faultf(AddressPairsExhausted,
			"The number of allowed address pairs exceeds the maximum %d.", maxAddressPairs)
	}
	if len(requested) > 0 && !portSecurity {
		return nil, Faultf(AddressPairsNeedPortSecurity,
			"Port Security must be enabled in order to have allowed address pairs on a port.")
	}
	all := make([]AddressPair, 0, len(requested))
	for _, p := range requested {
		if p.MAC == "" {
			p.MAC = mac
		}
		if slices.Contains(all, p) {
			return nil, Faultf(DuplicateAddressPair,
				"Request contains duplicate address pair: mac_address %s ip_address %s.", p.MAC, p.IP)
		}
		all = append(all, p)
	}
	return all, nil
}

// WithExtensions applies the allowed address pairs and extra DHCP options of a change. WithExtensions returns
// a fault if the address pairs or the DHCP options are not valid.
func (p Port) WithExtensions(c PortChange) (Port, error) {
	requested := p.AddressPairs
	if c.AddressPairs != nil {
		requested = *c.AddressPairs
	}
	var err error
	if p.AddressPairs, err = checkAddressPairs(requested, p.MAC, p.PortSecurity); err != nil {
		return p, err
	}
	// pairs that an earlier version stored do not prevent other changes of the port
	if c.AddressPairs != nil {
		for _, pair := range p.AddressPairs {
			if err := pair.checkSource(); err != nil {
				return p, err
			}
		}
	}
	if c.DHCPOptions != nil {
		p.DHCPOptions = mergeDHCPOptions(p.DHCPOptions, *c.DHCPOptions)
		if len(p.DHCPOptions) > maxDHCPOptions {
			return p, invalidInput("a port has at most %d extra_dhcp_opts.", maxDHCPOptions)
		}
	}
	return p, nil
}

// mergeDHCPOptions sets and removes those extra DHCP options of a port that the request contains.
// mergeDHCPOptions does not change options that the request does not contain.
func mergeDHCPOptions(options, requested []DHCPOption) []DHCPOption {
	merged := slices.Clone(options)
	for _, a := range requested {
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
