package neutron

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/network"
)

// orNone takes null for the empty list.
func orNone[T any](read func(json.RawMessage) ([]T, error)) func(json.RawMessage) ([]T, error) {
	return func(raw json.RawMessage) ([]T, error) {
		if isNull(raw) {
			return []T{}, nil
		}
		return read(raw)
	}
}

// addressPair reads an address or a block of addresses, and maybe a MAC.
func addressPair(raw json.RawMessage) (p network.AddressPair, err error) {
	m, err := dict(raw, "ip_address", "mac_address")
	if err != nil {
		return p, err
	}
	v, ok := m["ip_address"]
	if !ok {
		return p, network.Faultf(network.AddressPairWithoutIP, "AllowedAddressPair must contain ip_address")
	}
	s, err := text(64)(v)
	if err != nil {
		return p, err
	}
	if p.IP, err = netip.ParsePrefix(s); err != nil {
		var a netip.Addr
		if a, err = address(v); err != nil {
			return p, err
		}
		p.IP = netip.PrefixFrom(a, a.BitLen())
	}
	if p.IP.Addr().Is4In6() {
		return p, fmt.Errorf("'%s' is not a valid IP address", brief(v))
	}
	if v, ok := m["mac_address"]; ok && !isNull(v) {
		p.MAC, err = mac(v)
	}
	return p, err
}

// blankable are the DHCP options that say something by being empty.
var blankable = []string{"router", "classless-static-route"}

// dhcpOption reads a DHCP option; one whose value is null is to be taken away.
func dhcpOption(raw json.RawMessage) (o network.DHCPOption, err error) {
	m, err := dict(raw, "opt_name", "opt_value", "ip_version")
	if err != nil {
		return o, err
	}
	if _, ok := m["opt_name"]; !ok {
		return o, fmt.Errorf("a DHCP option has an opt_name")
	}
	if o.Name, err = filled(text(64))(m["opt_name"]); err != nil {
		return o, err
	}
	if v, ok := m["opt_value"]; ok && !isNull(v) {
		s, err := text(255)(v)
		if err == nil && s == "" && !slices.Contains(blankable, o.Name) {
			err = fmt.Errorf("the opt_value of %s is empty", o.Name)
		}
		if err != nil {
			return o, err
		}
		o.Value = &s
	}
	o.IPVersion = 4
	if v, ok := m["ip_version"]; ok {
		o.IPVersion, err = ipVersion(v)
	}
	return o, err
}

func viewPairs(p network.Port) []object {
	list := []object{}
	for _, a := range p.AddressPairs {
		list = append(list, object{"ip_address": a.Block(), "mac_address": a.MAC})
	}
	return list
}

func viewOptions(p network.Port) []object {
	list := []object{}
	for _, o := range p.DHCPOptions {
		list = append(list, object{"opt_name": o.Name, "opt_value": o.Value, "ip_version": o.IPVersion})
	}
	return list
}
