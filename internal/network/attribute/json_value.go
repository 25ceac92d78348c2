package attribute

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/text"
)

// The functions of this file read the values of attributes from the JSON of a request. The error of a
// function in this file says what is wrong with the value; the caller of the function adds the attribute's
// name.

// Line returns a function that reads a string of at most `limit` characters on a single line (see
// network.IsSingleLine).
func Line(limit int) func(json.RawMessage) (string, error) {
	return func(raw json.RawMessage) (string, error) {
		s, err := Text(limit)(raw)
		if err == nil && !network.IsSingleLine(s) {
			return "", fmt.Errorf("'%s' contains a control character or a line separator", Excerpt(raw))
		}
		return s, err
	}
}

// Text returns a function that reads a free text of at most `limit` characters (see network.IsFreeText).
func Text(limit int) func(json.RawMessage) (string, error) {
	return func(raw json.RawMessage) (string, error) {
		var s string
		if IsNull(raw) || json.Unmarshal(raw, &s) != nil {
			return "", fmt.Errorf("'%s' is not a valid string", Excerpt(raw))
		}
		if !network.IsFreeText(s) {
			return "", fmt.Errorf("'%s' contains a control character", Excerpt(raw))
		}
		if len([]rune(s)) > limit {
			return "", fmt.Errorf("'%s' exceeds maximum length of %d", Excerpt(raw), limit)
		}
		return s, nil
	}
}

// IsNull reports whether the JSON value is null.
func IsNull(raw json.RawMessage) bool { return string(raw) == "null" }

// Excerpt shortens a JSON value for an error message.
func Excerpt(raw json.RawMessage) string { return text.Excerpt(bytes.Trim(raw, `"`), 80) }

// Booleans are the words that clients send for true and false, in lower case.
var Booleans = map[string]bool{
	"true":  true,
	"1":     true,
	"false": false,
	"0":     false,
}

// Bool reads a boolean; the JSON value may also be a string or a number that stands for a boolean.
func Bool(raw json.RawMessage) (bool, error) {
	v, ok := Booleans[strings.ToLower(strings.Trim(string(raw), `"`))]
	if !ok {
		return false, network.Faultf(network.InvalidInput,
			"Invalid input for operation: '%s' cannot be converted to boolean.", Excerpt(raw))
	}
	return v, nil
}

// Int returns a function that reads an integer from `low` to `high`; the JSON value may also be a string with
// such an integer.
func Int(low, high int) func(json.RawMessage) (int, error) {
	return func(raw json.RawMessage) (int, error) {
		n, err := strconv.Atoi(strings.Trim(string(raw), `"`))
		if err != nil {
			return 0, fmt.Errorf("'%s' is not an integer", Excerpt(raw))
		}
		if n < low || n > high {
			return 0, fmt.Errorf("'%d' is not in range %d to %d", n, low, high)
		}
		return n, nil
	}
}

// UUID reads a UUID in the canonical form of 36 characters, in upper or lower case.
func UUID(raw json.RawMessage) (uuid.UUID, error) {
	s, err := Text(64)(raw)
	if err != nil {
		return uuid.Nil, err
	}
	v, ok := canonicalUUID(s)
	if !ok {
		return uuid.Nil, fmt.Errorf("'%s' is not a valid UUID", Excerpt(raw))
	}
	return v, nil
}

// MAC reads a MAC address that is neither zero nor the broadcast address. MAC accepts multicast addresses, as
// Neutron does.
func MAC(raw json.RawMessage) (string, error) {
	s, err := Text(64)(raw)
	if err != nil {
		return "", err
	}
	v, ok := canonicalMAC(s)
	if !ok || v == "00:00:00:00:00:00" || v == "ff:ff:ff:ff:ff:ff" {
		return "", fmt.Errorf("'%s' is not a valid MAC address", Excerpt(raw))
	}
	return v, nil
}

// canonicalUUID parses a UUID in the canonical form of 36 characters. The result ok is false if the text has
// another form.
func canonicalUUID(s string) (id uuid.UUID, ok bool) {
	s = strings.ToLower(s)
	id, err := uuid.Parse(s)
	return id, err == nil && id.String() == s
}

// canonicalMAC parses a MAC address of six bytes and returns the address in the form with colons.
func canonicalMAC(s string) (string, bool) {
	m, err := net.ParseMAC(s)
	if err != nil || len(m) != 6 {
		return "", false
	}
	return m.String(), true
}

// Address reads an IP address without a zone.
func Address(raw json.RawMessage) (netip.Addr, error) {
	s, err := Text(64)(raw)
	if err != nil {
		return netip.Addr{}, err
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" || a.Is4In6() {
		return netip.Addr{}, fmt.Errorf("'%s' is not a valid IP address", Excerpt(raw))
	}
	return a, nil
}

// AddressOrNone reads an IP address. If the JSON value is null, AddressOrNone returns the zero netip.Addr,
// which is not a valid address.
func AddressOrNone(raw json.RawMessage) (netip.Addr, error) {
	if IsNull(raw) {
		return netip.Addr{}, nil
	}
	return Address(raw)
}

// CIDR reads the address block of a subnet and sets the host bits of the block to zero.
func CIDR(raw json.RawMessage) (netip.Prefix, error) {
	s, err := Text(64)(raw)
	if err != nil {
		return netip.Prefix{}, err
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() || p.Bits() == 0 {
		return netip.Prefix{}, network.Faultf(network.InvalidInput,
			"Invalid input for cidr. Reason: '%s' is not a valid IP subnet.", Excerpt(raw))
	}
	return p.Masked(), nil
}

// OneOf returns a function that reads one of the allowed strings. For the JSON value null, the returned
// function returns the empty string.
func OneOf(allowed ...string) func(json.RawMessage) (string, error) {
	return func(raw json.RawMessage) (string, error) {
		var s string
		if err := json.Unmarshal(raw, &s); err == nil {
			for _, a := range allowed {
				if s == a || IsNull(raw) {
					return s, nil
				}
			}
		}
		return "", fmt.Errorf("'%s' is not in %v", Excerpt(raw), allowed)
	}
}

// MaxItems is the maximum number of items in a list that List reads. Neutron has lower limits for some
// attributes, which package network checks; MaxItems is higher than each of them, so that a client gets
// Neutron's error.
const MaxItems = 100

// List reads a list of at most MaxItems items and calls `read` for each item.
func List[T any](read func(json.RawMessage) (T, error)) func(json.RawMessage) ([]T, error) {
	return ListUpTo(MaxItems, read)
}

// ListUpTo does the same as List for a list of at most `limit` items. It checks the length before it calls
// `read`.
func ListUpTo[T any](limit int, read func(json.RawMessage) (T, error)) func(json.RawMessage) ([]T, error) {
	return func(raw json.RawMessage) ([]T, error) {
		var items []json.RawMessage
		if IsNull(raw) || json.Unmarshal(raw, &items) != nil {
			return nil, fmt.Errorf("'%s' is not a list", Excerpt(raw))
		}
		if err := CheckLength(len(items), limit); err != nil {
			return nil, err
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

// LengthError is the error for a list with more than Limit items.
type LengthError struct{ Items, Limit int }

func (e *LengthError) Error() string {
	return fmt.Sprintf("the list has %d items, more than %d", e.Items, e.Limit)
}

// CheckLength returns a LengthError if a list has more items than `limit`.
func CheckLength(items, limit int) error {
	if items > limit {
		return &LengthError{items, limit}
	}
	return nil
}

// Distinct returns a function that reads a list and refuses a list with equal items.
func Distinct[T comparable](read func(json.RawMessage) ([]T, error)) func(json.RawMessage) ([]T, error) {
	return func(raw json.RawMessage) ([]T, error) {
		list, err := read(raw)
		var duplicates []string
		count := make(map[T]int, len(list))
		for _, v := range list {
			if count[v]++; count[v] == 2 {
				duplicates = append(duplicates, fmt.Sprint(v))
			}
		}
		if err == nil && len(duplicates) > 0 {
			err = Refusal("Duplicate items in the list: '%s'", strings.Join(duplicates, ", "))
		}
		return list, err
	}
}

// Dict reads a dictionary. Dict returns an error if the dictionary has a key that is not among `keys`.
func Dict(raw json.RawMessage, keys ...string) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if IsNull(raw) || json.Unmarshal(raw, &m) != nil {
		return nil, fmt.Errorf("'%s' is not a dictionary", Excerpt(raw))
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

// Profile reads a dictionary of any content, at most 4095 bytes long. Profile decodes the dictionary and
// encodes it again, because PostgreSQL does not accept every form of a number that JSON allows.
func Profile(raw json.RawMessage) (json.RawMessage, error) {
	if IsNull(raw) {
		return json.RawMessage(`{}`), nil
	}
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return nil, fmt.Errorf("'%s' is not a dictionary", Excerpt(raw))
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

// NotEmpty reads a string that is not empty.
func NotEmpty(read func(json.RawMessage) (string, error)) func(json.RawMessage) (string, error) {
	return func(raw json.RawMessage) (string, error) {
		s, err := read(raw)
		if err == nil && s == "" {
			err = errors.New("'' is empty")
		}
		return s, err
	}
}

// NullIsEmpty reads null as the empty string.
func NullIsEmpty(read func(json.RawMessage) (string, error)) func(json.RawMessage) (string, error) {
	return func(raw json.RawMessage) (string, error) {
		if IsNull(raw) {
			return "", nil
		}
		return read(raw)
	}
}

// NullIsEmptyList reads null as the empty list.
func NullIsEmptyList[T any](read func(json.RawMessage) ([]T, error)) func(json.RawMessage) ([]T, error) {
	return func(raw json.RawMessage) ([]T, error) {
		if IsNull(raw) {
			return []T{}, nil
		}
		return read(raw)
	}
}

// IPVersion reads 4 or 6.
func IPVersion(raw json.RawMessage) (int, error) {
	n, err := Int(4, 6)(raw)
	if err == nil && n == 5 {
		return 0, errors.New("'5' is not in [4, 6]")
	}
	return n, err
}

// Refusal returns an error with a text of Neutron. Such a text may begin with a capital letter.
func Refusal(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

type refusal string

func (r refusal) Error() string { return string(r) }
