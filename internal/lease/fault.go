package lease

import (
	"errors"
	"fmt"
)

// ErrTransition means that the status of the lease does not allow the step.
var ErrTransition = errors.New("lease: the step is not allowed")

// Kind is the type of a fault.
type Kind string

// The kinds of faults.
const (
	InvalidInput          Kind = "invalid input"
	MissingParameter      Kind = "missing parameter"
	MalformedParameter    Kind = "malformed parameter"
	MalformedRequirements Kind = "malformed requirements"
	UnsupportedType       Kind = "unsupported resource type"
	// before_end_date is outside of the lease, or a new lease is too long
	NotAuthorized      Kind = "not authorized"
	UnknownReservation Kind = "unknown reservation"
	UnknownHost        Kind = "unknown host"
	AmbiguousHost      Kind = "ambiguous host"
	NotEnoughHosts     Kind = "not enough hosts"
	NotEnoughAddresses Kind = "not enough floating IPs"
	UnknownNetwork     Kind = "unknown network"
	UnknownFlavor      Kind = "unknown flavor"
	AddressInUse       Kind = "floating IP in use"
	CannotUpdate       Kind = "cannot update"
	InvalidStatus      Kind = "invalid status"
	HostInUse          Kind = "host in use"
	NotEnoughResources Kind = "not enough network segments or devices"
	ResourceInUse      Kind = "network segment or device in use"
	SearchTooLong      Kind = "search too long"
	QuotaExceeded      Kind = "quota exceeded"
)

// Fault is the error of a rejected request, which has changed nothing. The message of a Fault is the text
// that the API client gets.
type Fault struct {
	Kind    Kind
	Message string
}

func (f *Fault) Error() string { return f.Message }

// IsShortage reports whether the request was rejected only because too few resources are free at its dates.
func (f *Fault) IsShortage() bool {
	return f.Kind == NotEnoughHosts || f.Kind == NotEnoughAddresses || f.Kind == NotEnoughResources
}

// Faultf returns a Fault with a formatted message.
func Faultf(kind Kind, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Message: fmt.Sprintf(format, args...)}
}
