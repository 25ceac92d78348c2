package rpc

import (
	"strings"

	"github.com/google/uuid"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/store/networkstore"
)

// handlers implements the RPC methods that agents call.
type handlers struct {
	Store *networkstore.Store
}

// endpoints returns all methods with the newest minor version that Neutron's servers implement. Agents use no namespace.
func (h *handlers) endpoints() []oslomsg.Endpoint {
	return []oslomsg.Endpoint{
		{Minor: 4, Methods: h.stateMethods()},
		{Minor: 10, Methods: h.dhcpMethods()},
		{Minor: 9, Methods: h.l2Methods()},
		{Minor: 1, Methods: h.objectMethods()},
		{Minor: 3, Methods: h.securityGroupMethods()},
		{Minor: 1, Methods: h.dvrMethods()},
	}
}

// maxName is the longest name of a host, device or topic, in bytes.
const maxName = oslomsg.MaxName

// maxDevices is how many devices or ports a call may name. Agents send much shorter lists.
const maxDevices = 1000

// parseUUID parses an ID in the form with dashes. It returns uuid.Nil for any other text; no object has this ID.
func parseUUID(text string) uuid.UUID {
	id, err := uuid.Parse(strings.TrimSpace(text))
	if err != nil || len(text) != 36 {
		return uuid.Nil
	}
	return id
}
