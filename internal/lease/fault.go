package lease

import (
	"errors"
	"fmt"
)

// ErrTransition means that a step cannot be taken from the status in which the lease is.
var ErrTransition = errors.New("lease: no such transition")

// Kind tells the refusals of a request apart.
type Kind string

// The kinds of refusal.
const (
	InvalidInput          Kind = "invalid input"
	MissingParameter      Kind = "missing parameter"
	MalformedParameter    Kind = "malformed parameter"
	MalformedRequirements Kind = "malformed requirements"
	UnsupportedType       Kind = "unsupported resource type"
	NotAuthorized         Kind = "not authorized" // a before_end_date outside of the lease
	UnknownReservation    Kind = "unknown reservation"
	UnknownHost           Kind = "unknown host"
	NotEnoughHosts        Kind = "not enough hosts"
	NotEnoughAddresses    Kind = "not enough floating IPs"
	UnknownNetwork        Kind = "unknown network"
	UnknownFlavor         Kind = "unknown flavor"
	AddressInUse          Kind = "floating IP in use"
	CannotUpdate          Kind = "cannot update"
	InvalidStatus         Kind = "invalid status"
	HostInUse             Kind = "host in use"
)

// Fault is a refusal that the caller can act on. Nothing was changed.
type Fault struct {
	Kind    Kind
	Message string
}

func (f *Fault) Error() string { return f.Message }

// Refuse makes a Fault with a formatted message.
func Refuse(kind Kind, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Message: fmt.Sprintf(format, args...)}
}
