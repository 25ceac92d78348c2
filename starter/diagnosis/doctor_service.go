package diagnosis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"

	"berth/starter/cli"
)

// service describes a service that berth reaches over HTTP, for the advice of doctor.
type service struct {
	name, url   string
	setting     string // that has the URL
	path        string // with which the URL ends
	credentials string // settings that have the user and the password
	// setting that names the file with certificate authorities; empty: berth trusts those of the system
	ca      string
	waiting string // sentence: what waits while the service is unavailable
}

// unreachable returns the error of a request that got no answer.
func (v service) unreachable(err error) error {
	var untrusted *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var name *net.DNSError
	next := "Is " + v.setting + " correct?"
	switch {
	case errors.As(err, &untrusted) && v.ca == "":
		next = "Add the certificate authority of " + v.name + " to those of the system, and set " + v.setting + " to a name or address in its certificate."
	case errors.As(err, &untrusted):
		next = "Set " + v.ca + " to the certificate authority of " + v.name + ", and " + v.setting + " to a name or address in its certificate."
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		next = v.name + " does not use TLS at this port: does " + v.setting + " need http:// instead of https://?"
	case errors.As(err, &name):
		next = "The name in " + v.setting + " has no address: is it correct, and does the name server answer?"
	case errors.Is(err, syscall.ECONNREFUSED):
		next = "Nothing listens at this address: is " + v.name + " running, and is the port in " + v.setting + " correct?"
	case errors.Is(err, context.DeadlineExceeded):
		next = "No answer came: does " + v.name + " hang, or does a firewall drop the packets?"
	}
	return cli.Unavailable(v.name+" at "+v.url, v.waiting+" "+next, err)
}

// refused returns the error of an answer whose status says that the service does not work for berth.
func (v service) refused(status int) error {
	code, next := cli.ExitUnavailable, v.waiting+" See the log of "+v.name+"."
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return cli.Errorf(cli.ExitDenied, "Set "+v.credentials+".",
			"%s at %s rejects berth's user (%d)", v.name, v.url, status)
	case http.StatusNotFound:
		next = "Does " + v.setting + " end in " + v.path + "?"
	case http.StatusBadRequest:
		next = "Does " + v.setting + " need https:// instead of http://? Otherwise see the log of " + v.name + "."
	case http.StatusTooManyRequests,
		http.StatusBadGateway,
		http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		next = v.name + " is starting or overloaded. " + v.waiting
	}
	return cli.Errorf(code, next, "%s at %s answers %d", v.name, v.url, status)
}
