package osapi

import (
	"cmp"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"berth/internal/auditlog"
	"berth/internal/identity"
	"berth/internal/store/auditstore"
	"berth/internal/store/db"
)

// withAudit returns a request whose transactions write audit records.
func (a *API) withAudit(r *http.Request, route *Route) *http.Request {
	if a.Audit == nil || route.Unaudited {
		return r
	}
	audited := &auditstore.Request{
		OnlyNamed: r.Method == http.MethodGet,
		Record:    func() auditlog.Record { return a.auditRecord(r, route) },
	}
	return r.WithContext(db.WithRecorder(r.Context(), audited))
}

// auditRecord returns an audit record of a request that succeeds. The object is the one that the path names;
// for a request that creates an object, the store names the object.
func (a *API) auditRecord(r *http.Request, route *Route) auditlog.Record {
	caller := identity.From(r.Context())
	record := auditlog.Record{
		At:        time.Now(),
		Outcome:   auditlog.Success,
		User:      caller.User,
		Project:   caller.Project,
		Roles:     caller.Roles,
		AgentHost: caller.AgentHost,
		RequestID: RequestID(r.Context()),
		Address:   a.clientAddress(r),
		API:       strings.TrimPrefix(a.Prefix, "/"),
		Method:    r.Method,
	}
	if route != nil {
		record.Route = a.Prefix + route.Path
		record.ObjectType, record.ObjectID = routeObject(route.Path, r.PathValue)
	}
	return record
}

// auditDenial records a request that was refused with the status 403. A 401 has no known caller, so only the
// metrics count it.
func (a *API) auditDenial(r *http.Request, e *Error) {
	if a.Audit == nil || e.Status != http.StatusForbidden {
		return
	}
	route, _, _ := a.match(r)
	record := a.auditRecord(r, route)
	record.Outcome, record.Status = auditlog.Denied, e.Status
	client := record.Address
	if ip := a.clientIP(r); ip.IsValid() {
		client = ClientOf(ip).String()
	}
	a.Audit.Deny(record, client)
}

// clientAddress returns the address of the client or, if it is not known, of the peer of the connection.
func (a *API) clientAddress(r *http.Request) string {
	if ip := a.clientIP(r); ip.IsValid() {
		return ip.String()
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// objectTypes are the types of the objects whose collections have another name than the type and an s.
var objectTypes = map[string]string{
	"entries":          "journal_entry",
	"pause":            "journal",
	"resume":           "journal",
	"properties":       "resource_property",
	"os-hosts":         "host",
	"resource_classes": "resource_class",
	"allocations":      "consumer",
	"reshaper":         "resource_provider",
}

// routeObject returns the type and the ID of the object that a path names: /v2.0/ports/{id}/bindings/{host}
// names a port. The ID is empty if the path names a whole collection.
func routeObject(path string, value func(name string) string) (typ, id string) {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if segments[0] == "v1" || segments[0] == "v2.0" {
		segments = segments[1:]
	}
	first := slices.IndexFunc(segments, func(s string) bool { return strings.HasPrefix(s, "{") })
	switch {
	case len(segments) == 0:
		return "", ""
	case first == 0 || first < 0:
		return objectType(segments[0]), ""
	case segments[first] == "{type}":
		return value("type"), value("id")
	case segments[first] == "{collection}" && len(segments) > first+1:
		return objectType(value("collection")), value(strings.Trim(segments[first+1], "{}"))
	default:
		return objectType(segments[first-1]), value(strings.Trim(segments[first], "{}"))
	}
}

// objectType returns the type of the objects in a collection.
func objectType(collection string) string {
	return cmp.Or(objectTypes[collection], strings.ReplaceAll(strings.TrimSuffix(collection, "s"), "-", "_"))
}
