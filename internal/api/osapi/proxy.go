package osapi

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// isTrustedProxy reports whether the client of a request is a reverse proxy whose X-Forwarded headers count.
func (a *API) isTrustedProxy(r *http.Request) bool {
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && a.trusts(client.Addr())
}

// trusts reports whether an address belongs to a trusted proxy.
func (a *API) trusts(ip netip.Addr) bool {
	return Within(a.TrustedProxies, ip)
}

// withProxy returns a context with the mark that the client of the request is a trusted proxy. For any other
// client, it returns ctx.
func (a *API) withProxy(ctx context.Context, r *http.Request) context.Context {
	if len(a.TrustedProxies) == 0 || !a.isTrustedProxy(r) {
		return ctx
	}
	return context.WithValue(ctx, proxyKey, true)
}

// Maximum lengths of what a client, or a proxy in its name, says about the URL of berth, in bytes. Answers
// repeat this URL in each of their links, also answers to clients without credentials.
const (
	maxHost   = 255 + len(":65535") // the longest host name in DNS, and a port
	maxPrefix = 255                 // of X-Forwarded-Prefix, the path that an operator has chosen for berth
)

// validHost reports whether a Host header, or a value of X-Forwarded-Host, is a host with or without a port.
// HTTP/1.0 has requests without a host.
func validHost(host string) bool {
	if len(host) > maxHost {
		return false
	}
	named, err := url.Parse("//" + host)
	return err == nil && named.Host == host
}

// BaseURL returns the URL of berth as the client of the request knows it, without a slash at the end. The
// headers X-Forwarded-Proto, X-Forwarded-Host and X-Forwarded-Prefix count only if they come from a trusted
// proxy, because any client can send these headers.
func BaseURL(r *http.Request) string {
	u := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	if trusted, _ := r.Context().Value(proxyKey).(bool); !trusted {
		return u.String()
	}
	if scheme := forwarded(r, "Proto"); scheme == "http" || scheme == "https" {
		u.Scheme = scheme
	}
	if host := forwarded(r, "Host"); host != "" && validHost(host) {
		u.Host = host
	}
	if prefix := forwarded(r, "Prefix"); strings.HasPrefix(prefix, "/") && len(prefix) <= maxPrefix {
		u.Path = strings.TrimRight(prefix, "/")
	}
	return u.String()
}

// forwarded returns the value that the nearest proxy has set: the last value of a header X-Forwarded-….
func forwarded(r *http.Request, name string) string {
	values := strings.Split(strings.Join(r.Header.Values("X-Forwarded-"+name), ","), ",")
	return strings.TrimSpace(values[len(values)-1])
}
