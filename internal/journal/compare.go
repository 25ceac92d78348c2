package journal

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// SameObject reports whether the controller has the object that berth has sent; both arguments include the
// JSON envelope. SameObject compares only the sent attributes, because the controller adds attributes, omits
// null and empty ones, formats UUIDs with dashes, returns numbers as decimal strings, and returns lists in
// another order. An attribute that the controller does not return is ignored if both objects have the same
// revision_number. A wrong result false is harmless: the entry is sent again.
func SameObject(sent, got json.RawMessage) bool {
	s, err := decodeObject(sent)
	if err != nil {
		return false
	}
	g, err := decodeObject(got)
	if err != nil || len(s) != 1 {
		return false
	}
	for envelope := range s {
		mine, ok := s[envelope].(object)
		theirs, both := g[envelope].(object)
		if !ok || !both {
			return false
		}
		revision := mine["revision_number"]
		return sameObject(mine, theirs,
			revision != nil && sameValue(revision, theirs["revision_number"], false))
	}
	return false
}

// sameObject reports whether an object at the controller has the sent attributes. If `dropped` is set,
// sameObject ignores sent attributes that the controller does not return, but the controller must return at
// least one sent attribute.
func sameObject(sent, got object, dropped bool) bool {
	compared := len(sent) == 0
	for name, value := range sent {
		other, known := got[name]
		if !known && dropped {
			continue
		}
		if !sameValue(value, other, dropped) {
			return false
		}
		compared = true
	}
	return compared
}

func sameValue(sent, got any, dropped bool) bool {
	if isEmpty(sent) && isEmpty(got) {
		return true
	}
	switch s := sent.(type) {
	case object:
		g, ok := got.(object)
		return ok && sameObject(s, g, dropped)
	case []any:
		g, ok := got.([]any)
		return ok && sameList(s, g, dropped)
	case json.Number:
		g, ok := asNumber(got)
		return ok && sameNumber(s, g)
	case string:
		if n, ok := got.(json.Number); ok {
			return decimal.MatchString(s) && sameNumber(json.Number(s), n)
		}
		g, ok := got.(string)
		return ok && (s == g || sameUUID(s, g))
	default:
		return sent == got
	}
}

// sameList reports whether two lists have the same elements. Their order does not matter, because the
// controller stores sets.
func sameList(sent, got []any, dropped bool) bool {
	if len(sent) != len(got) {
		return false
	}
	left := slices.Clone(got)
	for _, s := range sent {
		i := slices.IndexFunc(left, func(g any) bool { return sameValue(s, g, dropped) })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case object:
		return len(v) == 0
	default:
		return false
	}
}

// maxDigits limits the length of numbers that are compared by their value, because a number with a large
// exponent is expensive to expand.
const maxDigits = 40

// decimal matches the numbers that the controller returns as strings.
var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// asNumber returns a number that the controller returned as a number or as a decimal string.
func asNumber(got any) (json.Number, bool) {
	if text, ok := got.(string); ok && decimal.MatchString(text) {
		return json.Number(text), true
	}
	n, ok := got.(json.Number)
	return n, ok
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	if len(a) > maxDigits || len(b) > maxDigits || strings.ContainsAny(string(a+b), "eE") {
		return false
	}
	x, ok := new(big.Rat).SetString(string(a))
	y, both := new(big.Rat).SetString(string(b))
	return ok && both && x.Cmp(y) == 0
}

var hexID = regexp.MustCompile(`^[0-9a-fA-F]{32}$`)

// canonicalUUID returns a UUID in its canonical form. canonicalUUID returns any other text unchanged.
func canonicalUUID(id string) string {
	bare := strings.ReplaceAll(strings.ToLower(id), "-", "")
	if !hexID.MatchString(bare) {
		return id
	}
	return bare[:8] + "-" + bare[8:12] + "-" + bare[12:16] + "-" + bare[16:20] + "-" + bare[20:]
}

func sameUUID(a, b string) bool {
	a, b = strings.ReplaceAll(a, "-", ""), strings.ReplaceAll(b, "-", "")
	return strings.EqualFold(a, b) && hexID.MatchString(a)
}
