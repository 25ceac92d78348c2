package odltest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// fillsNoOwner lists the types for which a create sets neither tenant_id from project_id nor project_id from
// tenant_id.
var fillsNoOwner = []string{
	"network",
	"subnet",
	"port",
	"router",
	"trunk",
	"bgpvpn",
	"loadbalancer",
	"member",
}

// viewOf returns the object as the real controller returns it after a create or an update: without unknown
// attributes, with the controller's default values, and with values of the types that the controller returns.
func viewOf(typ string, o map[string]any, created bool) map[string]any {
	shown := map[string]any{"id": o["id"]}
	if n := asNumber(o["revision_number"]); n != nil {
		shown["revision_number"] = n
	}
	setOwner(shown, typ, o, created)
	setAttributes(shown, schemas[typ], o, created)
	if typ == "subnet" && created {
		setSubnetDefaults(shown)
	}
	return shown
}

// setOwner sets tenant_id without dashes, and project_id to the tenant as it was sent. The
// real controller stores only the tenant, and whether the request contained project_id.
func setOwner(shown map[string]any, typ string, o map[string]any, created bool) {
	tenant, _ := o["tenant_id"].(string)
	project, _ := o["project_id"].(string)
	if created && !slices.Contains(fillsNoOwner, typ) {
		if tenant == "" {
			tenant = project
		}
		project = tenant
	}
	if tenant == "" {
		return
	}
	shown["tenant_id"] = withoutDashes(tenant)
	if project != "" {
		shown["project_id"] = tenant
	}
}

// withoutDashes returns a UUID without dashes, and any other text as it is.
func withoutDashes(id string) string {
	if bare := strings.ReplaceAll(id, "-", ""); len(id) == 36 && len(bare) == 32 {
		return bare
	}
	return id
}

func setAttributes(shown map[string]any, schema []schemaAttribute, o map[string]any, created bool) {
	for _, a := range schema {
		name := a.name
		if a.kind == valueMap {
			name = "Map"
		}
		value, missing := a.convert(o[a.name], created), o[a.name] == nil
		switch {
		case value != nil:
			shown[name] = value
		case missing && created && a.onCreate != nil:
			shown[name] = a.onCreate
		case missing && a.always != nil:
			shown[name] = a.always
		case a.orNull:
			shown[name] = nil
		}
	}
}

// convert returns the value as the real controller returns it, or nil if the controller does not return the
// value.
func (a schemaAttribute) convert(v any, created bool) any {
	if a.kind == valueMap {
		return asTexts(v)
	}
	if v == nil {
		return nil
	}
	list, _ := v.([]any)
	switch a.kind {
	case number:
		return a.known(asNumber(v))
	case flag:
		return asText(v) == "true" || asText(v) == "1"
	case texts, numbers:
		converted := []any{}
		for _, item := range list {
			if a.kind == numbers {
				item = asNumber(item)
			}
			converted = append(converted, item)
		}
		return converted
	case objectList:
		converted := []any{}
		for _, item := range list {
			if o, ok := item.(map[string]any); ok {
				converted = append(converted, a.convertObject(o, created))
			}
		}
		return converted
	case subobject:
		if o, ok := v.(map[string]any); ok {
			return a.convertObject(o, created)
		}
		return nil
	default:
		if _, ok := v.(map[string]any); ok {
			return "" // such as a binding:profile that is an object
		}
		return a.known(asText(v))
	}
}

// known returns the value, or nil if the attribute has an enumeration that does not contain the value.
func (a schemaAttribute) known(value any) any {
	if all, closed := enumerations[a.name]; closed && !slices.Contains(all, fmt.Sprint(value)) {
		return nil
	}
	return value
}

// enumerations lists the values that the real controller has for some attributes. The controller drops other
// values.
var enumerations = map[string][]string{
	"direction":             {"ingress", "egress"},
	"ethertype":             {"IPv4", "IPv6"},
	"provider:network_type": {"flat", "gre", "vlan", "vxlan"},
	"ip_version":            {"4", "6"},
	"ipv6_address_mode":     {"dhcpv6-stateful", "dhcpv6-stateless", "slaac"},
	"ipv6_ra_mode":          {"dhcpv6-stateful", "dhcpv6-stateless", "slaac"},
}

// isAttribute reports whether the real controller has the attribute.
func isAttribute(typ, name string) bool {
	return slices.Contains([]string{"id", "tenant_id", "project_id", "revision_number"}, name) ||
		slices.ContainsFunc(schemas[typ], func(a schemaAttribute) bool { return a.name == name })
}

func (a schemaAttribute) convertObject(o map[string]any, created bool) map[string]any {
	shown := map[string]any{}
	setAttributes(shown, a.of, o, created)
	return shown
}

// asText returns a text, number or boolean as text; nil for other values.
func asText(v any) any {
	switch v := v.(type) {
	case string:
		return v
	case json.Number, bool:
		return fmt.Sprint(v)
	}
	return nil
}

// asNumber returns a number, or a text with digits as a number; nil for other values.
func asNumber(v any) any {
	digits, _ := asText(v).(string)
	if _, err := strconv.ParseInt(digits, 10, 64); err != nil {
		return nil
	}
	return json.Number(digits)
}

// asTexts returns the values of an object as texts, and drops the values that are not texts, numbers or
// booleans.
func asTexts(v any) map[string]any {
	shown := map[string]any{}
	o, _ := v.(map[string]any)
	for name, value := range o {
		if value == nil { // if one value is null, the real controller drops all values
			return map[string]any{}
		}
		if t := asText(value); t != nil {
			shown[name] = t
		}
	}
	return shown
}

// setSubnetDefaults sets the gateway of a new subnet to the first address, and the allocation pool to all
// other addresses.
func setSubnetDefaults(shown map[string]any) {
	cidr, _ := shown["cidr"].(string)
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return
	}
	if shown["ip_version"] == nil {
		shown["allocation_pools"] = []any{}
		return
	}
	first, last := p.Masked().Addr().Next(), p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < 8*len(last); bit++ {
		last[bit/8] |= 1 << (7 - bit%8)
	}
	end, _ := netip.AddrFromSlice(last)
	if shown["gateway_ip"] == nil {
		shown["gateway_ip"] = longAddress(first)
	}
	if shown["allocation_pools"] == nil {
		shown["allocation_pools"] = []any{
			map[string]any{"start": longAddress(first.Next()), "end": longAddress(end.Prev())},
		}
	}
}

// longAddress returns an address as Java does, without the abbreviation of zeros in IPv6.
func longAddress(a netip.Addr) string {
	if a.Is4() {
		return a.String()
	}
	raw := a.As16()
	groups := make([]string, 8)
	for i := range groups {
		groups[i] = strconv.FormatUint(uint64(raw[2*i])<<8|uint64(raw[2*i+1]), 16)
	}
	return strings.Join(groups, ":")
}

// view returns an object as the real controller returns it, or nil if the object does not exist.
func (c *Controller) view(typ, id string) map[string]any {
	shown := c.views[key(typ, id)]
	if shown == nil || typ != "pool" {
		return shown
	}
	shown = maps.Clone(shown)
	members := []any{}
	for _, k := range slices.Sorted(maps.Keys(c.records)) {
		if rec := c.records[k]; rec.Type == "member" && rec.Object != nil && rec.Object["pool_id"] == id {
			members = append(members, c.views[k])
		}
	}
	shown["members"] = members
	return shown
}

// resetView computes the view of an object that was changed without a request.
func (c *Controller) resetView(rec *Record) {
	if rec.Object == nil {
		delete(c.views, key(rec.Type, rec.ID))
		return
	}
	c.views[key(rec.Type, rec.ID)] = viewOf(rec.Type, rec.Object, true)
}
