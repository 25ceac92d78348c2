package inventory

import "fmt"

// Kind tells what is wrong, for whoever must act on it: the API's status and code, the lease room's next step.
type Kind int

// What can be wrong with a request about providers, inventories and allocations.
const (
	Invalid         Kind = iota // the request makes no sense as it is
	UnknownClass                // a resource class of the request does not exist
	UnknownProvider             // a provider of the request does not exist, and the client is told so by a code
	Missing                     // the object of the request does not exist
	Refused                     // what exists forbids it: capacity, constraints, something in use
	Concurrent                  // another writer was faster: read again and retry
	InventoryInUse              // a class with allocations would vanish
	DuplicateName               // a provider's name or UUID is taken
	ProviderInUse               // a provider with allocations would vanish
	HasChildren                 // a provider with children would vanish
)

// Problem is a refusal by the rules of this room. Its message is for the client.
type Problem struct {
	Kind    Kind
	Message string
}

func (p *Problem) Error() string { return p.Message }

// Refuse makes a Problem with a formatted message.
func Refuse(kind Kind, format string, args ...any) *Problem {
	return &Problem{Kind: kind, Message: fmt.Sprintf(format, args...)}
}
