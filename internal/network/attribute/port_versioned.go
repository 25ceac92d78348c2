package attribute

import (
	"encoding/json"
	"strconv"
	"strings"

	"berth/internal/network"
)

// Versioned wraps the fields of an object in the envelope of oslo.versionedobjects.
func Versioned(name, version string, fields map[string]any) map[string]any {
	return object{
		"versioned_object.name":      name,
		"versioned_object.namespace": "versionedobjects",
		"versioned_object.version":   version,
		"versioned_object.data":      fields,
	}
}

// PortVersioned returns the port as Neutron's versioned object Port in the given version, with the fields
// that an agent needs to wire the port. The parameter `n` is the network to which the port belongs.
func PortVersioned(p network.Port, n network.Network, version string) map[string]any {
	fields := view(Ports, p, func(d Definition[port, portChange]) (string, func(port) any) {
		if d.ObjectName != "" {
			return d.ObjectName, d.Views.Versioned
		}
		return d.Name, d.Views.Versioned
	})
	fields["bindings"] = versionedBindings(p)
	fields["distributed_bindings"] = versionedDistributedBindings(p)
	fields["binding_levels"] = versionedLevels(p, n)
	for _, f := range unsupportedFields {
		if minorVersion(version) >= f.since {
			fields[f.name] = nil
		}
	}
	return Versioned("Port", version, fields)
}

// unsupportedFields are the fields of Neutron's versioned object Port that are always null in berth. The
// field `since` is the minor version of Port that added the unsupported field.
var unsupportedFields = []struct {
	name  string
	since int
}{
	{"data_plane_status", 0}, {"dns", 0}, {"qos_policy_id", 0}, {"qos_network_policy_id", 0},
	{"hints", 8}, {"hardware_offload_type", 9}, {"trusted", 10},
}

// minorVersion returns the number y of a version "x.y", or 0 if the text is not a version.
func minorVersion(version string) int {
	_, after, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(after)
	if err != nil {
		return 0
	}
	return n
}

func versionedPortSecurity(p port) any {
	return Versioned("PortSecurity", "1.0", object{"id": p.ID, "port_security_enabled": p.PortSecurity})
}

func versionedFixedIPs(p port) any {
	list := make([]object, len(p.Addresses))
	for i, a := range p.Addresses {
		list[i] = Versioned("IPAllocation", "1.0", object{
			"port_id":    p.ID,
			"subnet_id":  a.Subnet,
			"network_id": p.Network,
			"ip_address": a.IP,
		})
	}
	return list
}

func versionedAddressPairs(p port) any {
	list := make([]object, len(p.AddressPairs))
	for i, a := range p.AddressPairs {
		list[i] = Versioned("AllowedAddressPair", "1.0",
			object{"port_id": p.ID, "mac_address": a.MAC, "ip_address": a.CIDR()})
	}
	return list
}

// versionedBindings returns the bindings of a port that is wired on one host at a time: the active binding,
// and the INACTIVE bindings to hosts to which the port may move. In a versioned binding, the values of the
// fields profile and vif_details are strings that contain JSON.
func versionedBindings(p port) []object {
	list := []object{}
	if p.Distributed() {
		return list
	}
	for _, b := range p.AllBindings() {
		var details any
		if b.Host == p.Host && b.VIF != network.VIFUnbound && b.VIF != network.VIFFailed {
			details = jsonText(agentVIFDetails(p))
		}
		list = append(list, Versioned("PortBinding", "1.0", object{
			"port_id":     p.ID,
			"host":        b.Host,
			"profile":     jsonText(b.Profile),
			"vif_type":    b.VIF,
			"vif_details": details,
			"vnic_type":   b.VNIC,
			"status":      b.Status,
		}))
	}
	return list
}

// versionedDistributedBindings returns the bindings of a distributed port, which is wired on every host that
// has the port's router.
func versionedDistributedBindings(p port) []object {
	list := []object{}
	if !p.Distributed() {
		return list
	}
	for _, b := range p.Bindings {
		list = append(list, Versioned("DistributedPortBinding", "1.0", object{
			"port_id":     p.ID,
			"host":        b.Host,
			"profile":     jsonText(b.Profile),
			"vif_type":    b.VIF,
			"vif_details": nil,
			"vnic_type":   b.VNIC,
			"status":      b.Status,
			"router_id":   p.DeviceID,
		}))
	}
	return list
}

// versionedLevels returns a binding level for each host on which the port is bound: the mechanism driver and
// the segment.
func versionedLevels(p port, n network.Network) []object {
	list := []object{}
	for _, b := range p.AllBindings() {
		if b.Host == "" || b.VIF == network.VIFUnbound || b.VIF == network.VIFFailed {
			continue
		}
		driver := port{VIF: b.VIF}.MechanismDriver()
		if b.VIF == network.VIFDistributed {
			driver = port{VIF: network.VIFOVS}.MechanismDriver()
		}
		list = append(list, Versioned("PortBindingLevel", "1.1", object{
			"port_id":    p.ID,
			"host":       b.Host,
			"level":      0,
			"driver":     driver,
			"segment":    SegmentVersioned(n),
			"segment_id": n.ID,
		}))
	}
	return list
}

// SegmentVersioned returns the segment of a network as a versioned object. Each network of berth has one
// segment, and the ID of the segment is the ID of the network.
func SegmentVersioned(n network.Network) map[string]any {
	var physical any
	if n.PhysicalNetwork != "" {
		physical = n.PhysicalNetwork
	}
	return Versioned("NetworkSegment", "1.0", object{
		"id":               n.ID,
		"network_id":       n.ID,
		"name":             nil,
		"network_type":     n.Type,
		"physical_network": physical,
		"segmentation_id":  n.Segment,
		"is_dynamic":       false,
		"segment_index":    0,
		"hosts":            []string{},
		"description":      "",
		"revision_number":  n.Revision,
		"created_at":       timestamp(n.CreatedAt),
		"updated_at":       timestamp(n.UpdatedAt),
	})
}

// jsonText returns a dictionary as JSON text; the text of an empty dictionary is "{}".
func jsonText(v any) string {
	raw, err := json.Marshal(v)
	if err != nil || string(raw) == "null" {
		return "{}"
	}
	return string(raw)
}
