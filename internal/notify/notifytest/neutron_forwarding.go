package notifytest

import (
	"net/http"
	"slices"

	"github.com/google/uuid"
)

// PortForwarding forwards a port of a floating IP to a port of Neutron.
type PortForwarding struct {
	ID         string `json:"id"`
	FloatingIP string `json:"-"` // its ID
	Port       string `json:"internal_port_id"`
}

// AddPortForwardings adds a floating IP if the stub does not have it, and forwards to the ports of Neutron.
func (n *Neutron) AddPortForwardings(f FloatingIP, ports ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := n.putFloatingIP(f)
	for _, port := range ports {
		n.forwardings = append(n.forwardings, &PortForwarding{uuid.NewString(), id, port})
	}
}

// PortForwardings returns all port forwardings, in the order of their creation.
func (n *Neutron) PortForwardings() []PortForwarding {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []PortForwarding{}
	for _, f := range n.forwardings {
		all = append(all, *f)
	}
	return all
}

// hasForwardings reports whether a floating IP has port forwardings.
func (n *Neutron) hasForwardings(floatingIP string) bool {
	return slices.ContainsFunc(n.forwardings, func(f *PortForwarding) bool { return f.FloatingIP == floatingIP })
}

// internalPorts returns the ports of Neutron to which a floating IP leads: its own one, or those of its port
// forwardings.
func (n *Neutron) internalPorts(f *FloatingIP) []*Port {
	return matching(n.ports, func(p *Port) bool {
		forwarded := func(one *PortForwarding) bool { return one.FloatingIP == f.ID && one.Port == p.ID }
		return f.Port != nil && *f.Port == p.ID || slices.ContainsFunc(n.forwardings, forwarded)
	})
}

// routerOf returns the router of a floating IP, or "": the first one with an interface on the network of a
// port to which the floating IP leads.
func (n *Neutron) routerOf(f *FloatingIP) string {
	for _, internal := range n.internalPorts(f) {
		for _, p := range n.ports {
			if p.Network == internal.Network && !p.forged && slices.Contains(interfaceOwners, p.DeviceOwner) {
				return p.Device
			}
		}
	}
	return ""
}

func (n *Neutron) replyForwardings(r *http.Request, parts []string) (int, any) {
	if r.Method == http.MethodGet {
		return http.StatusOK, map[string]any{"port_forwardings": matching(n.forwardings,
			func(f *PortForwarding) bool { return f.FloatingIP == parts[0] })}
	}
	i := slices.IndexFunc(n.forwardings,
		func(f *PortForwarding) bool { return f.FloatingIP == parts[0] && f.ID == parts[2] })
	if i < 0 {
		return neutronError(http.StatusNotFound, "PortForwardingNotFound")
	}
	n.forwardings = slices.Delete(n.forwardings, i, i+1)
	return http.StatusNoContent, nil
}
