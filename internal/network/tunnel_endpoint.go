package network

import "net/netip"

// TunnelEndpoint is the address of a host for tunnels of one type.
type TunnelEndpoint struct {
	Type string // vxlan …
	Host string // empty if the agent does not report it
	IP   netip.Addr
}
