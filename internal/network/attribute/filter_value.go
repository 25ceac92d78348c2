package attribute

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strconv"

	"berth/internal/network"
)

// ErrNoMatch says that no object can have the filter's value, so the list is empty; for example, a text that
// is not a UUID matches no ID. A request that the API must reject gets another error.
var ErrNoMatch = errors.New("no object has this value")

// The functions of this file read the values of filters and return each value in the canonical form in which
// the database writes it.

// FilterUUID reads a UUID.
func FilterUUID(s string) (string, error) {
	v, ok := canonicalUUID(s)
	return v.String(), matchable(ok)
}

func matchable(ok bool) error {
	if ok {
		return nil
	}
	return ErrNoMatch
}

// FilterMAC reads a MAC address.
func FilterMAC(s string) (string, error) {
	v, ok := canonicalMAC(s)
	return v, matchable(ok)
}

// FilterIP reads an IP address. The filter value "" matches objects that have no address.
func FilterIP(s string) (string, error) {
	a, err := netip.ParseAddr(s)
	if s == "" {
		return "", nil
	}
	return a.String(), matchable(err == nil && a.Zone() == "")
}

// FilterCIDR reads an address block.
func FilterCIDR(s string) (string, error) {
	p, err := netip.ParsePrefix(s)
	return p.Masked().String(), matchable(err == nil)
}

// FilterBool reads a boolean.
func FilterBool(s string) (string, error) {
	v, err := Bool(json.RawMessage(s))
	return strconv.FormatBool(v), err
}

// FilterInt reads an integer.
func FilterInt(s string) (string, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		err = network.Faultf(network.InvalidInput,
			"Invalid input for operation: '%s' is not an integer.", Excerpt(json.RawMessage(s)))
	}
	return strconv.FormatInt(n, 10), err
}
