package network

import "net/netip"

// TunnelEndpoint is the IP address of a host for tunnels of one type, for example VXLAN.
type TunnelEndpoint struct {
	Type string // vxlan …
	Host string // empty if the agent does not report the host
	IP   netip.Addr
}
