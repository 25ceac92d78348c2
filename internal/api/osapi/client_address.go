package osapi

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientPrefixIPv6 is the length of the prefix that one client gets with IPv6.
const clientPrefixIPv6 = 64

// ClientOf returns the address under which a client counts for limits: with IPv6, all addresses of one /64
// network count together.
func ClientOf(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if !ip.Is6() {
		return ip
	}
	network, err := ip.Prefix(clientPrefixIPv6)
	if err != nil {
		return ip
	}
	return network.Addr()
}

// clientIP returns the address of the client of a request: the peer of the connection or, behind trusted
// proxies, the last address in X-Forwarded-For that is not a trusted proxy itself. If the proxies have named
// no address, clientIP returns the zero address, because the requests of all clients come from the proxy.
func (a *API) clientIP(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	if !a.trusts(peer.Addr()) {
		return peer.Addr().Unmap()
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		ip, ok := parseHop(strings.TrimSpace(hop))
		if !ok {
			break
		}
		if !a.trusts(ip) {
			return ip.Unmap()
		}
	}
	return netip.Addr{}
}

// parseHop parses one address of X-Forwarded-For. Some proxies add the port.
func parseHop(s string) (ip netip.Addr, ok bool) {
	if withPort, err := netip.ParseAddrPort(s); err == nil {
		return withPort.Addr(), true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return ip, err == nil
}
