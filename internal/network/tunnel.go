package network

import "net/netip"

// TunnelEnd is where the tunnels of a type reach a host.
type TunnelEnd struct {
	Type string // vxlan …
	Host string // empty if its agent does not say
	IP   netip.Addr
}
