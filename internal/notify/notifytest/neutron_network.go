package notifytest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Network is a network of Neutron.
type Network struct {
	ID              string   `json:"id"`
	Name            string   `json:"name"`
	Description     string   `json:"description"`
	Project         string   `json:"project_id"`
	Type            string   `json:"provider:network_type"`
	PhysicalNetwork string   `json:"provider:physical_network"`
	Segment         int      `json:"provider:segmentation_id"`
	Tags            []string `json:"tags"`
}

// Subnet is a subnet of Neutron.
type Subnet struct {
	ID      string `json:"id"`
	Network string `json:"network_id"`
}

// Port is a port of Neutron.
type Port struct {
	ID          string `json:"id"`
	Network     string `json:"network_id"`
	DeviceOwner string `json:"device_owner"`
	Device      string `json:"device_id"`
}

// Networks returns all networks, in the order of their creation.
func (n *Neutron) Networks() []Network {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []Network{}
	for _, one := range n.networks {
		all = append(all, *one)
	}
	return all
}

// SetNetwork changes the name and the tags of a network, as the owner of the network may do in a real cloud.
func (n *Neutron) SetNetwork(id, name string, tags []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range n.networks {
		if one.ID == id {
			one.Name, one.Tags = name, tags
		}
	}
}

// AddSubnet adds a subnet to a network of the stub.
func (n *Neutron) AddSubnet(network string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subnets = append(n.subnets, &Subnet{uuid.NewString(), network})
}

// Subnets returns the number of subnets.
func (n *Neutron) Subnets() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.subnets)
}

// AddPort adds a port to a network of the stub, and returns the ID of the port.
func (n *Neutron) AddPort(network, deviceOwner, device string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := &Port{uuid.NewString(), network, deviceOwner, device}
	n.ports = append(n.ports, p)
	return p.ID
}

// AbsentRouter is the ID of a router that does not exist. The stub has all other routers.
const AbsentRouter = "00000000-0000-4000-8000-000000000404"

// DeletePort deletes a port of the stub, as Nova does when it deletes the port's server, and returns the
// number of ports that are left.
func (n *Neutron) DeletePort(id string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports = slices.DeleteFunc(n.ports, func(p *Port) bool { return p.ID == id })
	return len(n.ports)
}

// replyNetwork answers a request for a network, subnet, port or router.
func (n *Neutron) replyNetwork(r *http.Request, collection string, parts []string, raw []byte) (int, any) {
	switch collection {
	case "networks":
		return n.replyNetworks(r, parts, raw)
	case "subnets":
		if r.Method == http.MethodDelete {
			return n.deleteSubnet(parts[0])
		}
		return http.StatusOK, map[string]any{
			"subnets": matching(n.subnets, func(s *Subnet) bool { return isOf(r, s.Network) }),
		}
	case "ports":
		if r.Method == http.MethodDelete {
			return n.deletePort(parts[0])
		}
		return http.StatusOK, map[string]any{
			"ports": matching(n.ports, func(p *Port) bool { return isOf(r, p.Network) }),
		}
	case "routers":
		return n.removeInterface(parts[0], raw)
	default:
		return neutronError(http.StatusNotFound, "HTTPNotFound")
	}
}

// isOf reports whether a list with the query of the request contains the objects of a network.
func isOf(r *http.Request, network string) bool {
	asked := r.URL.Query().Get("network_id")
	return asked == "" || asked == network
}

func neutronError(status int, kind string) (int, any) {
	return status, map[string]any{"NeutronError": map[string]any{"type": kind, "message": kind, "detail": ""}}
}

func matching[T any](all []*T, fits func(*T) bool) []*T {
	return slices.DeleteFunc(append([]*T{}, all...), func(one *T) bool { return !fits(one) })
}

func (n *Neutron) replyNetworks(r *http.Request, parts []string, raw []byte) (int, any) {
	var in struct {
		Network Network  `json:"network"`
		Tags    []string `json:"tags"`
	}
	_ = json.Unmarshal(raw, &in) // the body may be missing, because some requests have none
	query := r.URL.Query()
	if parts[0] == "" && r.Method == http.MethodGet {
		return http.StatusOK, map[string]any{"networks": matching(n.networks, func(one *Network) bool {
			fits := query.Get("tags") == "" || slices.Contains(one.Tags, query.Get("tags"))
			for key, has := range map[string]string{"id": one.ID, "name": one.Name, "project_id": one.Project} {
				fits = fits && (query.Get(key) == "" || query.Get(key) == has)
			}
			return fits
		})}
	}
	if parts[0] == "" {
		made := in.Network
		if slices.ContainsFunc(n.networks, func(other *Network) bool {
			return other.Type == made.Type && other.PhysicalNetwork == made.PhysicalNetwork &&
				other.Segment == made.Segment
		}) {
			return neutronError(http.StatusConflict, "VlanIdInUse")
		}
		made.ID, made.Tags = uuid.NewString(), []string{}
		n.networks = append(n.networks, &made)
		return http.StatusCreated, map[string]any{"network": made}
	}
	i := slices.IndexFunc(n.networks, func(one *Network) bool { return one.ID == parts[0] })
	switch {
	case i < 0:
		return neutronError(http.StatusNotFound, "NetworkNotFound")
	case r.Method == http.MethodDelete:
		return n.deleteNetwork(i)
	case r.Method == http.MethodPut && len(parts) == 2:
		n.networks[i].Tags = in.Tags
		return http.StatusOK, map[string]any{"tags": in.Tags}
	case r.Method == http.MethodPut:
		n.networks[i].Name = in.Network.Name
	}
	return http.StatusOK, map[string]any{"network": n.networks[i]}
}

// deletedWithNetwork reports whether Neutron deletes the port together with its subnet or network.
func deletedWithNetwork(p *Port) bool { return p.DeviceOwner == "network:dhcp" }

func (n *Neutron) deleteNetwork(i int) (int, any) {
	id := n.networks[i].ID
	if slices.ContainsFunc(n.ports, func(p *Port) bool { return p.Network == id && !deletedWithNetwork(p) }) {
		return neutronError(http.StatusConflict, "NetworkInUse")
	}
	n.networks = slices.Delete(n.networks, i, i+1)
	n.ports = slices.DeleteFunc(n.ports, func(p *Port) bool { return p.Network == id })
	n.subnets = slices.DeleteFunc(n.subnets, func(s *Subnet) bool { return s.Network == id })
	return http.StatusNoContent, nil
}

// deleteSubnet deletes a subnet. In the stub, every port has addresses of all subnets of its network.
func (n *Neutron) deleteSubnet(id string) (int, any) {
	i := slices.IndexFunc(n.subnets, func(s *Subnet) bool { return s.ID == id })
	if i < 0 {
		return neutronError(http.StatusNotFound, "SubnetNotFound")
	}
	inUse := func(p *Port) bool { return p.Network == n.subnets[i].Network && !deletedWithNetwork(p) }
	if slices.ContainsFunc(n.ports, inUse) {
		return neutronError(http.StatusConflict, "SubnetInUse")
	}
	n.subnets = slices.Delete(n.subnets, i, i+1)
	return http.StatusNoContent, nil
}

func (n *Neutron) deletePort(id string) (int, any) {
	i := slices.IndexFunc(n.ports, func(p *Port) bool { return p.ID == id })
	if i < 0 {
		return neutronError(http.StatusNotFound, "PortNotFound")
	}
	if strings.HasPrefix(n.ports[i].DeviceOwner, "network:router_interface") && n.ports[i].Device != AbsentRouter {
		return neutronError(http.StatusConflict, "L3PortInUse")
	}
	for _, f := range n.floatingIPs {
		if f.Port != nil && *f.Port == id {
			f.Port = nil
		}
	}
	n.ports = slices.Delete(n.ports, i, i+1)
	return http.StatusNoContent, nil
}

// hasFloatingIP reports whether a port of a network has a floating IP.
func (n *Neutron) hasFloatingIP(network string) bool {
	return slices.ContainsFunc(n.floatingIPs, func(f *FloatingIP) bool {
		attached := func(p *Port) bool { return p.ID == *f.Port && p.Network == network }
		return f.Port != nil && slices.ContainsFunc(n.ports, attached)
	})
}

// removeInterface removes the port in the request's body from a router, and deletes the port. removeInterface
// refuses the request while a port of the same network has a floating IP.
func (n *Neutron) removeInterface(router string, raw []byte) (int, any) {
	if router == AbsentRouter {
		return neutronError(http.StatusNotFound, "RouterNotFound")
	}
	var in struct {
		Port string `json:"port_id"`
	}
	_ = json.Unmarshal(raw, &in) // if the body names no port, no port matches below
	i := slices.IndexFunc(n.ports, func(p *Port) bool { return p.ID == in.Port && p.Device == router })
	if i < 0 {
		return neutronError(http.StatusNotFound, "RouterInterfaceNotFound")
	}
	if n.hasFloatingIP(n.ports[i].Network) {
		return neutronError(http.StatusConflict, "RouterInterfaceInUseByFloatingIP")
	}
	n.ports = slices.Delete(n.ports, i, i+1)
	return http.StatusOK, map[string]any{"id": router, "port_id": in.Port}
}
