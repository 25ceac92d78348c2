package neutron

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/network"
)

// verbs are the requests in which an attribute may be set.
type verbs int

const (
	onCreate verbs = 1 << iota
	onUpdate
	required // on create
	anytime  = onCreate | onUpdate
)

// String is the verb of a policy rule.
func (v verbs) String() string {
	if v == onUpdate {
		return "update"
	}
	return "create"
}

// attribute is one line of an object's table: what clients may do with it.
type attribute[C any] struct {
	name  string
	on    verbs
	admin bool // only administrators set it
	off   bool // but false of a new object says nothing, so that everybody may
	veil  bool // only administrators see it or filter by it
	set   func(*C, json.RawMessage) error
	field string                       // by which the store filters; empty if it does not
	read  func(string) (string, error) // a filter's value, or errNothing; nil for text
	sorts bool                         // lists can be ordered by it
}

// as makes an attribute's setter: where its value goes and how it is read.
func as[C, V any](at func(*C) **V, read func(json.RawMessage) (V, error)) func(*C, json.RawMessage) error {
	return func(c *C, raw json.RawMessage) error {
		v, err := read(raw)
		if err == nil {
			*at(c) = &v
		}
		return err
	}
}

// nothing accepts the empty value of an attribute that has no other here.
func nothing[C any](_ *C, raw json.RawMessage) error {
	switch strings.ReplaceAll(string(raw), " ", "") {
	case "null", "[]", "{}", `""`:
		return nil
	}
	return errors.New("only the empty value is supported")
}

// decode reads the request's body: one object under its singular name or, if bulk is not nil, several under their plural.
func (res resource[N, C]) decode(r *http.Request, verb verbs) (changes []C, bulk bool, err error) {
	envelope, err := readEnvelope(r)
	if err != nil {
		return nil, false, err
	}
	if raw, ok := envelope[res.one]; ok && len(envelope) == 1 {
		c, err := res.change(raw, verb, caller(r))
		return []C{c}, false, err
	}
	raw, ok := envelope[res.one+"s"]
	if !ok || len(envelope) != 1 || verb != onCreate {
		return nil, false, bad("Unable to find '%s' in request body", res.one)
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil, true, bad("Body contains invalid data: '%ss' is not a list", res.one)
	}
	if len(items) == 0 {
		return nil, true, bad("Resources required")
	}
	for _, item := range items {
		c, err := res.change(item, verb, caller(r))
		if err != nil {
			return nil, true, err
		}
		changes = append(changes, c)
	}
	return changes, true, nil
}

func readEnvelope(r *http.Request) (map[string]json.RawMessage, error) {
	if ct := r.Header.Get("Content-Type"); ct != "" {
		if media, _, err := mime.ParseMediaType(ct); err != nil || media != "application/json" {
			return nil, bad("Unsupported Content-Type: the body has to be application/json")
		}
	}
	var envelope map[string]json.RawMessage
	if err := osapi.Decode(r, &envelope); err != nil {
		return nil, err
	}
	return envelope, nil
}

// change reads one object. Attributes are set in the table's order, so that the same request always gets the same refusal.
func (res resource[N, C]) change(raw json.RawMessage, verb verbs, who identity.Caller) (c C, err error) {
	var given map[string]json.RawMessage
	if isNull(raw) || json.Unmarshal(raw, &given) != nil {
		return c, bad("Invalid input for %s. Reason: '%s' is not a dictionary.", res.one, brief(raw))
	}
	if err := res.known(given); err != nil {
		return c, err
	}
	for _, a := range res.attributes {
		v, ok := given[a.name]
		switch {
		case !ok && verb == onCreate && a.on&required != 0:
			return c, bad("Failed to parse request. Required attribute '%s' not specified", a.name)
		case !ok:
			continue
		case a.on&verb == 0 && verb == onCreate:
			return c, bad("Attribute '%s' not allowed in POST", a.name)
		case a.on&verb == 0:
			return c, bad("Cannot update read-only attribute %s", a.name)
		case a.admin && !who.Admin() && !(a.off && verb == onCreate && isFalse(v)):
			return c, forbidden(verb.String() + "_" + res.one + ":" + a.name)
		}
		if err := a.set(&c, v); err != nil {
			return c, invalid(a.name, err)
		}
	}
	return c, nil
}

func isFalse(raw json.RawMessage) bool {
	v, err := boolean(raw)
	return err == nil && !v
}

func (res resource[N, C]) known(given map[string]json.RawMessage) error {
	var unknown []string
	for name := range given {
		if !slices.ContainsFunc(res.attributes, func(a attribute[C]) bool { return a.name == name }) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return bad("Unrecognized attribute(s) '%s'", strings.Join(unknown, ", "))
}

func invalid(name string, err error) error {
	var fault *network.Fault
	var refused *osapi.Error
	if errors.As(err, &fault) || errors.As(err, &refused) {
		return err
	}
	return bad("Invalid input for %s. Reason: %s.", name, err)
}

// errNothing is what readers of filters' values say of one that nothing can be equal to. One that is of another type than the attribute is
// refused.
var errNothing = errors.New("nothing equals that")

func unless(ok bool) error {
	if ok {
		return nil
	}
	return errNothing
}

func asUUID(s string) (string, error) {
	v, ok := osapi.UUID(strings.ToLower(s))
	return v.String(), unless(ok)
}

func asMAC(s string) (string, error) {
	v, ok := canonicalMAC(s)
	return v, unless(ok)
}

func asIPText(s string) (string, error) {
	a, err := netip.ParseAddr(s)
	if s == "" {
		return "", nil
	}
	return a.String(), unless(err == nil && a.Zone() == "")
}

func asCIDR(s string) (string, error) {
	p, err := netip.ParsePrefix(s)
	return p.Masked().String(), unless(err == nil)
}

func asBool(s string) (string, error) {
	v, err := boolean(json.RawMessage(s))
	return strconv.FormatBool(v), err
}

func asInt(s string) (string, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		err = network.Faultf(network.InvalidInput, "Invalid input for operation: '%s' is not an integer.", clean(s))
	}
	return strconv.FormatInt(n, 10), err
}
