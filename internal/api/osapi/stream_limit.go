package osapi

import (
	"net/http"
	"net/netip"
	"slices"
)

const (
	// maxStreamBytes is the memory, in bytes, that the running requests of HTTP/2 of one listener may need
	// together, without their bodies and large answers, which have limits of their own.
	maxStreamBytes = 256 << 20
	// maxAddressStreams is the part of maxStreamBytes for the requests from one address.
	maxAddressStreams = 64 << 20
	// streamBytes is the memory of a running request beyond its headers: its goroutine, stream and buffers.
	streamBytes = 24 << 10
	// headerBytes is the memory of a header beyond its name and value.
	headerBytes = 64
)

// LimitStreams returns a handler that bounds the memory of the running requests of HTTP/2 of a listener, in
// all and, except for the networks in `exempt`, from one address. The limits of connections do not bound it:
// with one byte, a client repeats a header of 4 kB that it has sent before, and a request whose answer the
// client does not read keeps its headers until the timeout of the answer. LimitStreams aborts a request over
// a limit and calls `aborted`, because the client may not read an answer either. A request of HTTP/1 needs a
// connection of its own, so the limits of connections suffice.
func LimitStreams(listener string, exempt []netip.Prefix, aborted func(), h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor < 2 {
			h.ServeHTTP(w, r)
			return
		}
		of, size := streamShares(r, listener, exempt), streamSize(r)
		if !shares.tryAcquire(of, size) {
			aborted()
			panic(http.ErrAbortHandler)
		}
		defer shares.release(of, size)
		h.ServeHTTP(w, r)
		_ = http.NewResponseController(w).Flush() // waits for the client; fails only if the client is gone
	})
}

// streamShares returns the shares that a request has of the memory for the running requests of a listener.
func streamShares(r *http.Request, listener string, exempt []netip.Prefix) []share {
	all := []share{{"streams of " + listener, maxStreamBytes}}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || Within(exempt, peer.Addr()) {
		return all
	}
	return append(all, share{"streams of " + listener + " from " + ClientOf(peer.Addr()).String(), maxAddressStreams})
}

// streamSize returns the memory of a running request.
func streamSize(r *http.Request) int64 {
	size := streamBytes + len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			size += headerBytes + len(name) + len(v)
		}
	}
	return int64(size)
}

// Within reports whether an address belongs to one of the networks.
func Within(networks []netip.Prefix, ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(ip) })
}
