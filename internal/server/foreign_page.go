package server

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"berth/internal/config"
)

// refuseForeignPages makes the handlers refuse requests that a page of another site makes a browser on this
// machine send. BERTH_AUTH=noauth needs this protection, because it accepts every token, and a browser on
// this machine reaches loopback addresses. With BERTH_AUTH=keystone, refuseForeignPages changes nothing.
//
// A page can give its own name to a loopback address (DNS rebinding), so the handlers answer only if the
// header Host names a loopback address. A page can also send a form with a user and a password in the URL, so
// the handlers refuse writes from origins that no setting names. refuseForeignPages returns an error if a
// setting contains an invalid origin.
func (a *App) refuseForeignPages(handlers ...*http.Handler) error {
	if a.cfg.Auth == config.Keystone {
		return nil
	}
	crossOrigin := http.NewCrossOriginProtection()
	anyOrigin := slices.Contains(a.cfg.CORS.Origins, "*")
	for _, origin := range slices.Concat(a.cfg.CORS.Origins, originOf(a.cfg.TemporalUI)) {
		if origin == "*" {
			continue
		}
		if err := crossOrigin.AddTrustedOrigin(origin); err != nil {
			return fmt.Errorf("BERTH_CORS_ALLOWED_ORIGIN: %w", err)
		}
	}
	for _, h := range handlers {
		next := *h
		*h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// every error has an ID, as the OpenAPI documents say; the APIs replace this one by their own
			w.Header().Set("X-Openstack-Request-Id", "req-"+uuid.NewString())
			switch {
			case !namesLoopback(r.Host):
				writeError(w, http.StatusForbidden,
					"With BERTH_AUTH=noauth, berth answers only requests to localhost or to a loopback address.")
			case !anyOrigin && crossOrigin.Check(r) != nil:
				writeError(w, http.StatusForbidden,
					"With BERTH_AUTH=noauth, berth refuses writes from the pages of other sites; BERTH_CORS_ALLOWED_ORIGIN allows a site.")
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
	return nil
}

// namesLoopback reports whether the value of a header Host, with or without a port, is localhost or a
// loopback address. Clients other than browsers may send no Host.
func namesLoopback(host string) bool {
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), "0")
	}
	return host == ":0" || config.IsLoopback(host)
}
