package network

import (
	"encoding/json"
	"slices"
	"strings"
)

// ODLAgent is the type of the agents that stand for an OpenDaylight controller on its hosts: nobody runs there, the controller
// says what it can wire.
const ODLAgent = "ODL L2"

// controllerDriver names the mechanism of ports that a controller wires.
const controllerDriver = "opendaylight"

// PseudoBinary is the program that such agents seem to be.
const PseudoBinary = "neutron-odlagent-portbinding"

// ReportsKey is in the configurations of such an agent: whether the controller tells which ports it has wired. If it does
// not, its ports wait for nobody.
const ReportsKey = "reports_port_status"

// hostConfiguration is what a controller says about a host.
type hostConfiguration struct {
	VNICs []struct {
		VNIC    string         `json:"vnic_type"`
		VIF     string         `json:"vif_type"`
		Details map[string]any `json:"vif_details"`
	} `json:"supported_vnic_types"`
	Networks []string `json:"allowed_network_types"`
	Reports  bool     `json:"reports_port_status"`
}

// ByController tells whether a controller wires the port, and not an agent.
func (p Port) ByController() bool { return len(p.Details) > 0 }

// silentController tells whether the controller that wires the port does not say when it has.
func (p Port) silentController(agents []HostAgent) bool {
	at := controllerAmong(agents)
	if !p.ByController() || at < 0 {
		return false
	}
	c, ok := agents[at].host()
	return ok && !c.Reports
}

func controllerAmong(agents []HostAgent) int {
	return slices.IndexFunc(agents, func(a HostAgent) bool { return a.Type == ODLAgent })
}

// host reads the agent's configurations, which may be anything.
func (a HostAgent) host() (hostConfiguration, bool) {
	var c hostConfiguration
	return c, json.Unmarshal(a.Configurations, &c) == nil
}

// byController is how a controller wires the port on its host, whether the controller is to be reached at this moment or
// not; false if it does not.
func (p Port) byController(agents []HostAgent) (vif string, details json.RawMessage, ok bool) {
	at := controllerAmong(agents)
	if at < 0 {
		return "", nil, false
	}
	c, ok := agents[at].host()
	if !ok || !slices.Contains(c.Networks, agents[at].NetworkType) {
		return "", nil, false
	}
	for _, v := range c.VNICs {
		if v.VNIC != p.VNIC {
			continue
		}
		shown := map[string]any{}
		for name, value := range v.Details {
			shown[name] = p.socket(name, value, v.Details)
		}
		shown["bound_drivers"] = map[string]string{"0": controllerDriver}
		details, err := json.Marshal(shown)
		return vifOf(v.VIF), details, err == nil
	}
	return "", nil, false
}

// vifOf is the VIF type that a controller names, unless that says something else here.
func vifOf(named string) string {
	if slices.Contains([]string{"", VIFUnbound, VIFFailed, VIFDistributed, VIFPhysical}, named) || strings.ContainsRune(named, 0) {
		return VIFOVS
	}
	return named
}

// deviceName is how long the name of a device may be.
const deviceName = 14

// socket is a detail with the port's ID in the place of $PORT_ID: cut, so that it is a device's name with its prefix.
func (p Port) socket(name string, value any, all map[string]any) any {
	path, ok := value.(string)
	if name != "vhostuser_socket" || !ok {
		return value
	}
	prefix, _ := all["port_prefix"].(string)
	id := p.ID.String()
	return strings.ReplaceAll(path, "$PORT_ID", id[:max(deviceName-len(prefix), 0)])
}
