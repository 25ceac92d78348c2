package notifytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/google/uuid"
)

// AbsentRouter is the ID of a router that does not exist. The stub has all other routers.
const AbsentRouter = "00000000-0000-4000-8000-000000000404"

// Route is an extra route of a router.
type Route struct {
	Destination string `json:"destination"`
	NextHop     string `json:"nexthop"`
}

// Router is a router of Neutron.
type Router struct {
	ID       string  `json:"id"`
	Routes   []Route `json:"routes"`
	Revision int     `json:"revision_number"`
}

// snatOwner is the owner of the ports that Neutron creates for the interfaces of distributed routers with an
// external gateway.
const snatOwner = "network:router_centralized_snat"

// interfaceOwners are the owners of the ports that connect a network to a router.
var interfaceOwners = []string{
	"network:router_interface",
	"network:router_interface_distributed",
	"network:ha_router_replicated_interface",
}

// routerPorts are the owners of the ports that Neutron does not delete while their router exists.
var routerPorts = append([]string{
	"network:router_gateway",
	"network:floatingip",
	"network:floatingip_agent_gateway",
	snatOwner,
}, interfaceOwners...)

// AddDistributedInterface connects a network to a distributed router with an external gateway: Neutron adds a
// second port to the network. The results are the IDs of this port and of the interface.
func (n *Neutron) AddDistributedInterface(network string) (snat, routerInterface string) {
	router := uuid.NewString()
	snat = n.AddPort(network, snatOwner, router)
	return snat, n.AddPort(network, "network:router_interface_distributed", router)
}

// SetRoutes sets the extra routes of a router.
func (n *Neutron) SetRoutes(router string, routes ...Route) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.router(router)
	r.Routes = routes
	r.Revision++
}

// Routes returns the extra routes of a router.
func (n *Neutron) Routes(router string) []Route {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.router(router).Routes)
}

// router returns the router with an ID. The stub creates the router if necessary.
func (n *Neutron) router(id string) *Router {
	i := slices.IndexFunc(n.routers, func(r *Router) bool { return r.ID == id })
	if i < 0 {
		i = len(n.routers)
		n.routers = append(n.routers, &Router{ID: id, Routes: []Route{}, Revision: 1})
	}
	return n.routers[i]
}

func (n *Neutron) replyRouters(r *http.Request, parts []string, raw []byte) (int, any) {
	if parts[0] == AbsentRouter {
		return neutronError(http.StatusNotFound, "RouterNotFound")
	}
	if len(parts) == 2 {
		return n.removeInterface(parts[0], raw)
	}
	router := n.router(parts[0])
	if r.Method == http.MethodPut {
		expected := r.Header.Get("If-Match")
		if expected != "" && expected != fmt.Sprintf("revision_number=%d", router.Revision) {
			return neutronError(http.StatusPreconditionFailed, "RevisionNumberConstraintFailed")
		}
		var in struct{ Router Router }
		_ = json.Unmarshal(raw, &in) // a body without routes removes all routes
		connected := func(route Route) bool {
			return n.isNextHop(route, func(p *Port) bool { return p.Device == router.ID })
		}
		for _, route := range in.Router.Routes {
			if !connected(route) {
				return neutronError(http.StatusBadRequest, "InvalidRoutes")
			}
		}
		router.Routes = in.Router.Routes
		router.Revision++
	}
	return http.StatusOK, map[string]any{"router": router}
}

// isNextHop reports whether the next hop of a route is in a subnet of the network of a port.
func (n *Neutron) isNextHop(route Route, of func(*Port) bool) bool {
	hop, _ := netip.ParseAddr(route.NextHop) // the zero Addr is in no subnet
	return slices.ContainsFunc(n.subnets, func(s *Subnet) bool {
		onSubnet := func(p *Port) bool { return p.Network == s.Network && of(p) }
		return netip.MustParsePrefix(s.CIDR).Contains(hop) && slices.ContainsFunc(n.ports, onSubnet)
	})
}

// floatingIPNeeds reports whether a floating IP of a router leads to a port of a network.
func (n *Neutron) floatingIPNeeds(router, network string) bool {
	return slices.ContainsFunc(n.floatingIPs, func(f *FloatingIP) bool {
		onNetwork := func(p *Port) bool { return p.Network == network }
		return n.routerOf(f) == router && slices.ContainsFunc(n.internalPorts(f), onNetwork)
	})
}

// removeInterface removes the port in the request's body from a router, and deletes the port and the port
// that Neutron has created for it. removeInterface refuses the request while the port is one of a trunk,
// while a floating IP of the router leads to a port of the same network, and while a route of the router
// has a next hop on this network.
func (n *Neutron) removeInterface(router string, raw []byte) (int, any) {
	var in struct {
		Port string `json:"port_id"`
	}
	_ = json.Unmarshal(raw, &in) // if the body names no port, no port matches below
	isInterface := func(p *Port) bool { return p.ID == in.Port && p.Device == router && !p.forged }
	i := slices.IndexFunc(n.ports, isInterface)
	if i < 0 {
		return neutronError(http.StatusNotFound, "RouterInterfaceNotFound")
	}
	network := n.ports[i].Network
	if why := n.trunkUse(in.Port); why != "" {
		return neutronError(http.StatusConflict, why)
	}
	if n.floatingIPNeeds(router, network) {
		return neutronError(http.StatusConflict, "RouterInterfaceInUseByFloatingIP")
	}
	needsInterface := func(route Route) bool { return n.isNextHop(route, isInterface) }
	if slices.ContainsFunc(n.router(router).Routes, needsInterface) {
		return neutronError(http.StatusConflict, "RouterInterfaceInUseByRoute")
	}
	n.ports = slices.DeleteFunc(n.ports, func(p *Port) bool {
		isSNAT := p.Network == network && p.Device == router && p.DeviceOwner == snatOwner && !p.forged
		return isInterface(p) || isSNAT
	})
	return http.StatusOK, map[string]any{"id": router, "port_id": in.Port}
}
