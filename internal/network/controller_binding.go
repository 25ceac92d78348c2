package network

import (
	"encoding/json"
	"slices"
	"strings"
)

// ODLAgent is the type of pseudo agents: rows that describe, per host, what an OpenDaylight controller can
// wire. A pseudo agent is only a row in the database; no process of this agent runs on the host.
const ODLAgent = "ODL L2"

// controllerDriver is the mechanism driver name of ports that a controller wires.
const controllerDriver = "opendaylight"

// ODLAgentBinary is the `binary` of pseudo agents.
const ODLAgentBinary = "neutron-odlagent-portbinding"

// ReportsPortStatusKey is a key in the configurations of a pseudo agent. The value of the key
// ReportsPortStatusKey is true if the controller reports to berth when a port is wired. If the value of
// ReportsPortStatusKey is false, berth does not wait for the controller: the ports on the pseudo agent's host
// have no L2 block.
const ReportsPortStatusKey = "reports_port_status"

// hostConfiguration is the configuration of a host, in the form that networking-odl gives to its pseudo
// agents.
type hostConfiguration struct {
	VNICs []struct {
		VNIC    string         `json:"vnic_type"`
		VIF     string         `json:"vif_type"`
		Details map[string]any `json:"vif_details"`
	} `json:"supported_vnic_types"`
	Networks      []string `json:"allowed_network_types"`
	ReportsStatus bool     `json:"reports_port_status"`
}

// WiredByController reports whether a controller, and not an agent, wires the port.
func (p Port) WiredByController() bool { return len(p.ControllerVIFDetails) > 0 }

// controllerReportsNothing reports whether a controller wires the port and never reports the port's status.
func (p Port) controllerReportsNothing(agents []HostAgent) bool {
	at := indexOfController(agents)
	if !p.WiredByController() || at < 0 {
		return false
	}
	c, ok := agents[at].parseHostConfiguration()
	return ok && !c.ReportsStatus
}

func indexOfController(agents []HostAgent) int {
	return slices.IndexFunc(agents, func(a HostAgent) bool { return a.Type == ODLAgent })
}

// parseHostConfiguration decodes the pseudo agent's configurations. parseHostConfiguration returns false if
// the configurations are malformed.
func (a HostAgent) parseHostConfiguration() (hostConfiguration, bool) {
	var c hostConfiguration
	return c, json.Unmarshal(a.Configurations, &c) == nil
}

// bindByController returns the VIF type and VIF details of a port that a controller wires, whether or not the
// controller is reachable now. If the controller cannot wire the port, the result ok is false.
func (p Port) bindByController(agents []HostAgent) (vif string, details json.RawMessage, ok bool) {
	at := indexOfController(agents)
	if at < 0 {
		return "", nil, false
	}
	c, ok := agents[at].parseHostConfiguration()
	if !ok || !slices.Contains(c.Networks, p.NetworkType) {
		return "", nil, false
	}
	for _, v := range c.VNICs {
		if v.VNIC != p.VNIC {
			continue
		}
		shown := map[string]any{}
		for name, value := range v.Details {
			shown[name] = p.substitutePortID(name, value, v.Details)
		}
		shown["bound_drivers"] = map[string]string{"0": controllerDriver}
		details, err := json.Marshal(shown)
		return vifTypeFrom(v.VIF), details, err == nil
	}
	return "", nil, false
}

// vifTypeFrom returns the VIF type that a controller names. If the named type has a special meaning in berth,
// vifTypeFrom returns "ovs" instead.
func vifTypeFrom(name string) string {
	if slices.Contains([]string{"", VIFUnbound, VIFFailed, VIFDistributed, VIFPhysical}, name) ||
		strings.ContainsRune(name, 0) {
		return VIFOVS
	}
	return name
}

// maxDeviceName is the length to which Nova and Neutron cut the name of a port's network device. Linux allows
// one character more.
const maxDeviceName = 14

// substitutePortID replaces $PORT_ID in the detail vhostuser_socket. substitutePortID shortens the port's ID
// so that port_prefix and the shortened ID together form a valid device name.
func (p Port) substitutePortID(name string, value any, all map[string]any) any {
	path, ok := value.(string)
	if name != "vhostuser_socket" || !ok {
		return value
	}
	prefix, _ := all["port_prefix"].(string)
	id := p.ID.String()
	return strings.ReplaceAll(path, "$PORT_ID", id[:max(maxDeviceName-len(prefix), 0)])
}
