package attribute

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/network"
)

// The functions of this file read the values of attributes that only ports have.

// macOrRandom reads a MAC address. If the JSON value is null, macOrRandom returns a random MAC address.
func macOrRandom(raw json.RawMessage) (string, error) {
	if IsNull(raw) {
		return network.NewMAC(), nil
	}
	return MAC(raw)
}

// VNICType reads the type of a virtual NIC, which must be one of Neutron's VNIC types.
var VNICType = NotEmpty(OneOf(
	"normal",
	"direct",
	"macvtap",
	"baremetal",
	"direct-physical",
	"virtio-forwarder",
	"smart-nic",
	"vdpa",
	"accelerator-direct",
	"accelerator-direct-physical",
	"remote-managed",
))

func setProfile(c *network.PortChange, raw json.RawMessage) (err error) {
	c.Profile, err = Profile(raw)
	return err
}

// fixedIP reads an entry of fixed_ips: a subnet, an address, or both.
func fixedIP(raw json.RawMessage) (f network.FixedIP, err error) {
	m, err := Dict(raw, "subnet_id", "ip_address")
	if err != nil {
		return f, err
	}
	if v, ok := m["subnet_id"]; ok {
		if f.Subnet, err = UUID(v); err != nil {
			return f, err
		}
	}
	if v, ok := m["ip_address"]; ok {
		if f.IP, err = Address(v); err != nil {
			return f, err
		}
	}
	if len(m) == 0 {
		return f, network.Faultf(network.InvalidInput,
			"Invalid input for operation: IP allocation requires subnet_id or ip_address.")
	}
	return f, nil
}

// addressPair reads an address or an address block, with an optional MAC address.
func addressPair(raw json.RawMessage) (p network.AddressPair, err error) {
	m, err := Dict(raw, "ip_address", "mac_address")
	if err != nil {
		return p, err
	}
	v, ok := m["ip_address"]
	if !ok {
		return p, network.Faultf(network.AddressPairWithoutIP, "AllowedAddressPair must contain ip_address")
	}
	s, err := Text(64)(v)
	if err != nil {
		return p, err
	}
	if p.IP, err = netip.ParsePrefix(s); err != nil {
		var a netip.Addr
		if a, err = Address(v); err != nil {
			return p, err
		}
		p.IP = netip.PrefixFrom(a, a.BitLen())
	}
	if p.IP.Addr().Is4In6() {
		return p, fmt.Errorf("'%s' is not a valid IP address", Excerpt(v))
	}
	if v, ok := m["mac_address"]; ok && !IsNull(v) {
		p.MAC, err = MAC(v)
	}
	return p, err
}

// emptyValueAllowed are the DHCP options whose value may be empty.
var emptyValueAllowed = []string{"router", "classless-static-route"}

// optionText returns a function that reads a text of a DHCP option: a single line of at most `limit` bytes.
// dnsmasq reads 1,024 bytes of a line of the DHCP agent, and takes the rest as a line of its own, which can
// be an option for all ports of the network.
func optionText(limit int) func(json.RawMessage) (string, error) {
	return func(raw json.RawMessage) (string, error) {
		s, err := Line(limit)(raw)
		if err == nil && len(s) > limit {
			err = fmt.Errorf("'%s' has more than %d bytes", Excerpt(raw), limit)
		}
		return s, err
	}
}

// dhcpOption reads a DHCP option. A value of null means that the update removes the option from the port.
func dhcpOption(raw json.RawMessage) (o network.DHCPOption, err error) {
	m, err := Dict(raw, "opt_name", "opt_value", "ip_version")
	if err != nil {
		return o, err
	}
	if _, ok := m["opt_name"]; !ok {
		return o, fmt.Errorf("a DHCP option must have an opt_name")
	}
	if o.Name, err = NotEmpty(optionText(64))(m["opt_name"]); err != nil {
		return o, err
	}
	if v, ok := m["opt_value"]; ok && !IsNull(v) {
		s, err := optionText(255)(v)
		switch {
		case err != nil:
			return o, err
		case s == "" && !slices.Contains(emptyValueAllowed, o.Name):
			err = fmt.Errorf("the opt_value of %s is empty", o.Name)
		// the agent writes the client ID into the line of the port's MAC, where a comma can add another MAC
		case strings.Contains(s, ",") && o.IsClientID():
			err = fmt.Errorf("the opt_value of %s contains a comma", o.Name)
		}
		if err != nil {
			return o, err
		}
		o.Value = &s
	}
	o.IPVersion = 4
	if v, ok := m["ip_version"]; ok {
		o.IPVersion, err = IPVersion(v)
	}
	return o, err
}
