package odltest

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
)

// checkObject returns an error reply if the real controller refuses the object.
func (c *Controller) checkObject(r resource, o map[string]any, create bool) reply {
	if r.mandatory != "" && o[r.mandatory] == nil {
		return serverError
	}
	for attribute, typ := range r.checkedParents {
		if id, ok := o[attribute].(string); ok && id != "" && c.object(typ, id) == nil {
			return errorReply(442, "%s %s is missing", typ, id)
		}
	}
	valid := true
	switch r.objectType {
	case "port":
		valid = validPort(o)
	case "subnet":
		valid = validSubnet(o, create)
	case "security_group_rule":
		if a := checkProtocol(o); a.status != 0 {
			return a
		}
		valid = validRule(o)
	}
	if !valid {
		return serverError
	}
	return reply{}
}

// protocolNames are the names that the real controller has for the protocol of a rule.
var protocolNames = []string{"tcp", "udp", "icmp", "icmpv6"}

func checkProtocol(o map[string]any) reply {
	protocol, ok := asText(o["protocol"]).(string)
	if !ok || slices.Contains(protocolNames, protocol) {
		return reply{}
	}
	number, err := strconv.Atoi(protocol)
	switch {
	case err != nil:
		return errorReply(http.StatusBadRequest, "protocol %s is unknown", protocol)
	case number < 0 || number > 255:
		return serverError
	}
	return reply{}
}

func validRule(o map[string]any) bool {
	return validPortNumber(o["port_range_min"]) && validPortNumber(o["port_range_max"]) &&
		validCIDR(o["remote_ip_prefix"])
}

func validPort(o map[string]any) bool {
	groups, _ := o["security_groups"].([]any)
	for _, g := range groups {
		if _, ok := g.(map[string]any); !ok {
			return false
		}
	}
	for _, ip := range objectsOf(o["fixed_ips"]) {
		if ip["subnet_id"] == nil || !validAddress(ip["ip_address"]) {
			return false
		}
	}
	for _, pair := range objectsOf(o["allowed_address_pairs"]) {
		if pair["mac_address"] == nil {
			return false
		}
	}
	details, _ := o["binding:vif_details"].(map[string]any)
	for _, value := range details {
		if _, nested := value.(map[string]any); nested {
			return false
		}
	}
	mac, ok := o["mac_address"].(string)
	if !ok {
		return true
	}
	_, err := net.ParseMAC(mac)
	return err == nil
}

func validSubnet(o map[string]any, create bool) bool {
	if create && o["cidr"] == nil {
		return false
	}
	return validCIDR(o["cidr"]) && validAddress(o["gateway_ip"])
}

func objectsOf(v any) (objects []map[string]any) {
	list, _ := v.([]any)
	for _, item := range list {
		if o, ok := item.(map[string]any); ok {
			objects = append(objects, o)
		}
	}
	return objects
}

// validAddress reports whether a value is an IP address, or missing.
func validAddress(v any) bool {
	address, ok := v.(string)
	_, err := netip.ParseAddr(address)
	return !ok || address == "" || err == nil
}

func validCIDR(v any) bool {
	cidr, ok := v.(string)
	_, err := netip.ParsePrefix(cidr)
	return !ok || err == nil
}

func validPortNumber(v any) bool {
	n, ok := asNumber(v).(interface{ Int64() (int64, error) })
	if !ok {
		return true
	}
	value, err := n.Int64()
	return err == nil && value >= 0 && value <= 65535
}
