package inventory

import "fmt"

// Kind is the kind of a fault. The kind determines the HTTP status and the error code of the API's response.
// If a step of a lease gets the fault, the kind also determines how the step continues.
type Kind int

// The kinds of faults.
const (
	Invalid      Kind = iota // the request is not valid
	UnknownClass             // a resource class in the request does not exist
	// a provider in the request does not exist; the response has its own error code
	UnknownProvider
	Missing          // the object in the URL does not exist
	Conflict         // capacity, unit constraints or usage forbid the request
	ConcurrentUpdate // another writer changed the generation: read again and retry
	InventoryInUse   // a class with allocations would be removed
	DuplicateName    // the name or UUID of a provider is in use
	ProviderInUse    // a provider with allocations would be deleted
	HasChildren      // a provider with children would be deleted
)

// Fault is the error of a request that a rule of package inventory rejects. The message of a Fault is the
// text that the API client gets.
type Fault struct {
	Kind    Kind
	Message string
	Objects []Object // of kind ConcurrentUpdate: what another writer has changed
}

// Object is a provider or a consumer: an object with a generation.
type Object struct {
	Type ObjectType
	UUID string
}

// ObjectType is a type of objects with a generation.
type ObjectType string

// The types of objects with a generation.
const (
	ProviderObject ObjectType = "provider"
	ConsumerObject ObjectType = "consumer"
)

func (p *Fault) Error() string { return p.Message }

// Faultf returns a Fault with a formatted message.
func Faultf(kind Kind, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// About adds objects of a type to a fault of kind ConcurrentUpdate.
func (p *Fault) About(t ObjectType, uuids ...string) *Fault {
	for _, uuid := range uuids {
		p.Objects = append(p.Objects, Object{t, uuid})
	}
	return p
}
