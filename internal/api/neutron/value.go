package neutron

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/network"
)

// Readers of JSON values. An error says what is wrong with the value; whoever knows the attribute's name adds it.

// text reads a string of at most that many characters.
func text(limit int) func(json.RawMessage) (string, error) {
	return func(raw json.RawMessage) (string, error) {
		var s string
		if isNull(raw) || json.Unmarshal(raw, &s) != nil {
			return "", fmt.Errorf("'%s' is not a valid string", brief(raw))
		}
		if strings.ContainsRune(s, 0) {
			return "", fmt.Errorf("the string contains a NUL character")
		}
		if len([]rune(s)) > limit {
			return "", fmt.Errorf("'%s' exceeds maximum length of %d", brief(raw), limit)
		}
		return s, nil
	}
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// brief is a value for an error message.
func brief(raw json.RawMessage) string {
	s := strings.Trim(string(raw), `"`)
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

var truths = map[string]bool{"true": true, "1": true, "false": false, "0": false}

// boolean reads true and false, and the strings and numbers that clients send for them.
func boolean(raw json.RawMessage) (bool, error) {
	v, ok := truths[strings.ToLower(strings.Trim(string(raw), `"`))]
	if !ok {
		return false, network.Faultf(network.InvalidInput, "Invalid input for operation: '%s' cannot be converted to boolean.", brief(raw))
	}
	return v, nil
}

// integer reads a whole number between the bounds, also if it is written as a string.
func integer(low, high int) func(json.RawMessage) (int, error) {
	return func(raw json.RawMessage) (int, error) {
		n, err := strconv.Atoi(strings.Trim(string(raw), `"`))
		if err != nil {
			return 0, fmt.Errorf("'%s' is not an integer", brief(raw))
		}
		if n < low || n > high {
			return 0, fmt.Errorf("'%d' is not in range %d to %d", n, low, high)
		}
		return n, nil
	}
}

func id(raw json.RawMessage) (uuid.UUID, error) {
	s, err := text(64)(raw)
	if err != nil {
		return uuid.Nil, err
	}
	v, ok := osapi.UUID(strings.ToLower(s))
	if !ok {
		return uuid.Nil, fmt.Errorf("'%s' is not a valid UUID", brief(raw))
	}
	return v, nil
}

func mac(raw json.RawMessage) (string, error) {
	s, err := text(64)(raw)
	if err != nil {
		return "", err
	}
	v, ok := canonicalMAC(s)
	multicast := ok && strings.ContainsRune("13579bdf", rune(v[1]))
	if !ok || multicast || v == "00:00:00:00:00:00" {
		return "", fmt.Errorf("'%s' is not a valid MAC address", brief(raw))
	}
	return v, nil
}

func canonicalMAC(s string) (string, bool) {
	m, err := net.ParseMAC(s)
	if err != nil || len(m) != 6 {
		return "", false
	}
	return m.String(), true
}

// address reads an IP address.
func address(raw json.RawMessage) (netip.Addr, error) {
	s, err := text(64)(raw)
	if err != nil {
		return netip.Addr{}, err
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" || a.Is4In6() {
		return netip.Addr{}, fmt.Errorf("'%s' is not a valid IP address", brief(raw))
	}
	return a, nil
}

// addressOrNone reads an IP address, or null for none.
func addressOrNone(raw json.RawMessage) (netip.Addr, error) {
	if isNull(raw) {
		return netip.Addr{}, nil
	}
	return address(raw)
}

func cidr(raw json.RawMessage) (netip.Prefix, error) {
	s, err := text(64)(raw)
	if err != nil {
		return netip.Prefix{}, err
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() || p.Bits() == 0 {
		return netip.Prefix{}, network.Faultf(network.InvalidInput, "Invalid input for cidr. Reason: '%s' is not a valid IP subnet.", brief(raw))
	}
	return p.Masked(), nil
}

// oneOf reads a string of a set; null is the empty string.
func oneOf(allowed ...string) func(json.RawMessage) (string, error) {
	return func(raw json.RawMessage) (string, error) {
		var s string
		if err := json.Unmarshal(raw, &s); err == nil {
			for _, a := range allowed {
				if s == a || isNull(raw) {
					return s, nil
				}
			}
		}
		return "", fmt.Errorf("'%s' is not in %v", brief(raw), allowed)
	}
}

// listOf reads a list of values.
func listOf[T any](read func(json.RawMessage) (T, error)) func(json.RawMessage) ([]T, error) {
	return func(raw json.RawMessage) ([]T, error) {
		var items []json.RawMessage
		if isNull(raw) || json.Unmarshal(raw, &items) != nil {
			return nil, fmt.Errorf("'%s' is not a list", brief(raw))
		}
		list := make([]T, len(items))
		for i, item := range items {
			v, err := read(item)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	}
}

// dict reads an object that has no other keys than these.
func dict(raw json.RawMessage, keys ...string) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if isNull(raw) || json.Unmarshal(raw, &m) != nil {
		return nil, fmt.Errorf("'%s' is not a dictionary", brief(raw))
	}
	known := map[string]bool{}
	for _, k := range keys {
		known[k] = true
	}
	for k := range m {
		if !known[k] {
			return nil, fmt.Errorf("unexpected key '%s'; allowed are %v", k, keys)
		}
	}
	return m, nil
}

func fixedIP(raw json.RawMessage) (f network.Fixed, err error) {
	m, err := dict(raw, "subnet_id", "ip_address")
	if err != nil {
		return f, err
	}
	if v, ok := m["subnet_id"]; ok {
		if f.Subnet, err = id(v); err != nil {
			return f, err
		}
	}
	if v, ok := m["ip_address"]; ok {
		if f.IP, err = address(v); err != nil {
			return f, err
		}
	}
	if len(m) == 0 {
		return f, network.Faultf(network.InvalidInput, "Invalid input for operation: IP allocation requires subnet_id or ip_address.")
	}
	return f, nil
}

func pool(raw json.RawMessage) (p network.Pool, err error) {
	m, err := dict(raw, "start", "end")
	if err != nil {
		return p, err
	}
	if len(m) != 2 {
		return p, fmt.Errorf("an allocation pool has a start and an end")
	}
	if p.Start, err = address(m["start"]); err != nil {
		return p, err
	}
	p.End, err = address(m["end"])
	return p, err
}

func hostRoute(raw json.RawMessage) (r network.Route, err error) {
	m, err := dict(raw, "destination", "nexthop")
	if err != nil {
		return r, err
	}
	if len(m) != 2 {
		return r, fmt.Errorf("a host route has a destination and a nexthop")
	}
	var destination string
	if json.Unmarshal(m["destination"], &destination) != nil {
		return r, fmt.Errorf("'%s' is not a valid IP subnet", brief(m["destination"]))
	}
	if r.Destination, err = netip.ParsePrefix(destination); err != nil {
		return r, fmt.Errorf("'%s' is not a valid IP subnet", brief(m["destination"]))
	}
	r.NextHop, err = address(m["nexthop"])
	return r, err
}

// nameserver reads an IP address as text.
func nameserver(raw json.RawMessage) (string, error) {
	a, err := address(raw)
	return a.String(), err
}

// profile reads a dictionary of anything. Its numbers become ones that every reader of the database understands.
func profile(raw json.RawMessage) (json.RawMessage, error) {
	if isNull(raw) {
		return json.RawMessage(`{}`), nil
	}
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return nil, fmt.Errorf("'%s' is not a dictionary", brief(raw))
	}
	if strings.Contains(string(raw), `\u0000`) {
		return nil, fmt.Errorf("the dictionary contains a NUL character")
	}
	if len(raw) > 4095 {
		return nil, fmt.Errorf("the dictionary is longer than 4095 characters")
	}
	clean, err := json.Marshal(m)
	return clean, err
}
