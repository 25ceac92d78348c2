package journal

import (
	"encoding/json"
	"fmt"
	"slices"
)

// associationType describes a type of association of a BGPVPN. The controller has no collection of
// associations: it has the lists of networks and routers of each BGPVPN. networking-odl therefore mirrors the
// change of an association as an update of the BGPVPN.
type associationType struct {
	typ       string // networking-odl's name of the type
	attribute string // attribute with the ID of the associated object
	list      string // attribute of the BGPVPN that lists the associated objects
}

var associationTypes = []associationType{
	{typ: "bgpvpn_network_association", attribute: "network_id", list: "networks"},
	{typ: "bgpvpn_router_association", attribute: "router_id", list: "routers"},
}

const bgpvpnType = "bgpvpn"

// IsAssociation reports whether the type is a type of association of a BGPVPN. The journal has no entries of
// such a type: the change of an association is an update of the BGPVPN.
func IsAssociation(typ string) bool { return slices.Contains(AssociationTypes(bgpvpnType), typ) }

// AssociationTypes returns the types of associations that objects of the type `typ` can have.
func AssociationTypes(typ string) []string {
	if typ != bgpvpnType {
		return nil
	}
	var all []string
	for _, t := range associationTypes {
		all = append(all, t.typ)
	}
	return all
}

// Association is the association of a BGPVPN with a network or a router.
type Association struct {
	VPN    Ref    // the BGPVPN
	list   string // attribute of the BGPVPN that lists the associated objects
	member string // ID of the network or router
}

// ReadAssociation reads an association from its data.
func ReadAssociation(typ string, data json.RawMessage) (Association, error) {
	i := slices.IndexFunc(associationTypes, func(t associationType) bool { return t.typ == typ })
	if i < 0 {
		return Association{}, fmt.Errorf("%q is not a type of association", typ)
	}
	t := associationTypes[i]
	o, err := decodeObject(data)
	if err != nil {
		return Association{}, fmt.Errorf("invalid data of the %s: %w", typ, err)
	}
	vpn, _ := o["bgpvpn_id"].(string)
	member, _ := o[t.attribute].(string)
	if vpn == "" || member == "" {
		return Association{}, fmt.Errorf("the %s has no bgpvpn_id or no %s", typ, t.attribute)
	}
	return Association{VPN: Ref{Type: bgpvpnType, ID: vpn}, list: t.list, member: member}, nil
}

// AddTo returns the data of the BGPVPN with the association.
func (a Association) AddTo(vpn json.RawMessage) (json.RawMessage, error) {
	return a.change(vpn, func(ids []any) []any { return append(ids, a.member) })
}

// RemoveFrom returns the data of the BGPVPN without the association.
func (a Association) RemoveFrom(vpn json.RawMessage) (json.RawMessage, error) {
	return a.change(vpn, func(ids []any) []any { return ids })
}

// change returns the data of the BGPVPN after the function f has changed the BGPVPN's list of associated IDs.
// f gets the list without the ID of this association's network or router, so that the list never contains
// this ID twice.
func (a Association) change(vpn json.RawMessage, f func(ids []any) []any) (json.RawMessage, error) {
	o, err := decodeObject(vpn)
	if err != nil {
		return nil, fmt.Errorf("invalid data of the %s %s: %w", a.VPN.Type, a.VPN.ID, err)
	}
	ids, _ := o[a.list].([]any)
	o[a.list] = f(slices.DeleteFunc(append([]any{}, ids...), func(id any) bool { return id == a.member }))
	return json.Marshal(o)
}

// KeepAssociations returns the data of an updated object. If the object is a BGPVPN and its new data leave
// out a list of associated objects, the list stays as it was before.
func KeepAssociations(typ string, before, after json.RawMessage) (json.RawMessage, error) {
	if typ != bgpvpnType {
		return after, nil
	}
	was, err := decodeObject(before)
	if err != nil {
		return nil, fmt.Errorf("invalid data of the %s: %w", typ, err)
	}
	o, err := decodeObject(after)
	if err != nil {
		return nil, fmt.Errorf("invalid data of the %s: %w", typ, err)
	}
	for _, t := range associationTypes {
		if _, given := o[t.list]; !given && was[t.list] != nil {
			o[t.list] = was[t.list]
		}
	}
	return json.Marshal(o)
}
