package notifytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
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
	CIDR    string `json:"cidr"`
}

// Port is a port of Neutron.
type Port struct {
	ID          string `json:"id"`
	Network     string `json:"network_id"`
	DeviceOwner string `json:"device_owner"`
	Device      string `json:"device_id"`
	// Options are the DHCP options of the port, which can be large.
	Options string `json:"extra_dhcp_opts"`
	// the port has the owner and the ID of a router, but the router has no such interface
	forged bool
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

// AddNetwork adds a network, as administrators can create it on any segment, and returns its ID.
func (n *Neutron) AddNetwork(one Network) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	one.ID = uuid.NewString()
	n.networks = append(n.networks, &one)
	return one.ID
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

// AddSubnet adds a subnet to a network of the stub, and returns an address of the subnet.
func (n *Neutron) AddSubnet(network string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	number := len(n.subnets)
	n.subnets = append(n.subnets, &Subnet{uuid.NewString(), network, fmt.Sprintf("10.0.%d.0/24", number)})
	return fmt.Sprintf("10.0.%d.7", number)
}

// Subnets returns the number of subnets.
func (n *Neutron) Subnets() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.subnets)
}

// AddPort adds a port to a network of the stub, and returns the ID of the port. A port with the owner of a
// router interface is an interface of the router.
func (n *Neutron) AddPort(network, deviceOwner, device string) string {
	return n.addPort(&Port{Network: network, DeviceOwner: deviceOwner, Device: device})
}

// AddLargePort adds a port with DHCP options of a size in bytes.
func (n *Neutron) AddLargePort(network string, size int) string {
	return n.addPort(&Port{Network: network, Options: strings.Repeat("x", size)})
}

// AddForgedPort adds a port as a user can create it: with the device owner and the ID of a router that has no
// such interface.
func (n *Neutron) AddForgedPort(network, deviceOwner, router string) string {
	return n.addPort(&Port{Network: network, DeviceOwner: deviceOwner, Device: router, forged: true})
}

func (n *Neutron) addPort(p *Port) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.ID = uuid.NewString()
	n.ports = append(n.ports, p)
	return p.ID
}

// DeletePort deletes a port of the stub, as Nova does when it deletes the port's server, and returns the
// number of ports that are left.
func (n *Neutron) DeletePort(id string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports = slices.DeleteFunc(n.ports, func(p *Port) bool { return p.ID == id })
	return len(n.ports)
}

// replyNetwork answers a request for a network, subnet, port, router or trunk.
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
		return n.replyPorts(r, parts[0], raw)
	case "routers":
		return n.replyRouters(r, parts, raw)
	case "trunks":
		return n.replyTrunks(r, parts, raw)
	default:
		return neutronError(http.StatusNotFound, "HTTPNotFound")
	}
}

// isOf reports whether a list with the query of the request contains the objects of a network.
func isOf(r *http.Request, network string) bool {
	asked := r.URL.Query().Get("network_id")
	return asked == "" || asked == network
}

// withFields returns the objects of a list with only the attributes that the query of the request names, or
// with all attributes if it names none.
func withFields[T any](r *http.Request, all []*T) any {
	fields := r.URL.Query()["fields"]
	if len(fields) == 0 {
		return all
	}
	reduced := []map[string]json.RawMessage{}
	raw, err := json.Marshal(all)
	if err == nil {
		err = json.Unmarshal(raw, &reduced)
	}
	if err != nil {
		panic(err) // the stub's own objects are JSON objects
	}
	for _, one := range reduced {
		maps.DeleteFunc(one, func(field string, _ json.RawMessage) bool { return !slices.Contains(fields, field) })
	}
	return reduced
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
			for key, has := range map[string]string{
				"id":                        one.ID,
				"name":                      one.Name,
				"project_id":                one.Project,
				"provider:network_type":     one.Type,
				"provider:physical_network": one.PhysicalNetwork,
				"provider:segmentation_id":  strconv.Itoa(one.Segment),
			} {
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
func (n *Neutron) deletedWithNetwork(p *Port) bool {
	owners := []string{"network:dhcp", "network:distributed", "network:floatingip_agent_gateway"}
	return slices.Contains(owners, p.DeviceOwner) && n.portInUse(p) == ""
}

func (n *Neutron) deleteNetwork(i int) (int, any) {
	id := n.networks[i].ID
	if slices.ContainsFunc(n.ports, func(p *Port) bool { return p.Network == id && !n.deletedWithNetwork(p) }) {
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
	inUse := func(p *Port) bool { return p.Network == n.subnets[i].Network && !n.deletedWithNetwork(p) }
	if slices.ContainsFunc(n.ports, inUse) {
		return neutronError(http.StatusConflict, "SubnetInUse")
	}
	n.subnets = slices.Delete(n.subnets, i, i+1)
	return http.StatusNoContent, nil
}

func (n *Neutron) replyPorts(r *http.Request, id string, raw []byte) (int, any) {
	if id == "" {
		return http.StatusOK, map[string]any{
			"ports": withFields(r, matching(n.ports, func(p *Port) bool { return isOf(r, p.Network) })),
		}
	}
	i := slices.IndexFunc(n.ports, func(p *Port) bool { return p.ID == id })
	switch {
	case i < 0:
		return neutronError(http.StatusNotFound, "PortNotFound")
	case r.Method == http.MethodDelete:
		return n.deletePort(i)
	}
	in := struct{ Port *Port }{n.ports[i]}
	_ = json.Unmarshal(raw, &in) // a body without attributes changes nothing
	return http.StatusOK, map[string]any{"port": n.ports[i]}
}

// portInUse returns the type of the error with which Neutron refuses to delete a port, or "".
func (n *Neutron) portInUse(p *Port) string {
	if why := n.trunkUse(p.ID); why != "" {
		return why
	}
	if slices.Contains(routerPorts, p.DeviceOwner) && p.Device != "" && p.Device != AbsentRouter {
		return "ServicePortInUse"
	}
	return ""
}

func (n *Neutron) deletePort(i int) (int, any) {
	if why := n.portInUse(n.ports[i]); why != "" {
		return neutronError(http.StatusConflict, why)
	}
	for _, f := range n.floatingIPs {
		if f.Port != nil && *f.Port == n.ports[i].ID {
			f.Port = nil
		}
	}
	leadsHere := func(f *PortForwarding) bool { return f.Port == n.ports[i].ID }
	n.forwardings = slices.DeleteFunc(n.forwardings, leadsHere)
	n.ports = slices.Delete(n.ports, i, i+1)
	return http.StatusNoContent, nil
}
