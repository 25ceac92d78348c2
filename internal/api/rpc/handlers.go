package rpc

import (
	"strings"

	"github.com/google/uuid"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
	"berth/internal/store/portstore"
)

// handlers implements the RPC methods that Neutron's agents call.
type handlers struct {
	Store  *portstore.Store
	sender *sender // nil: a call may come from any host
}

// endpoints returns all RPC methods in groups, each group with the newest minor version that Neutron's
// servers implement. Agents call the RPC methods of berth without a namespace.
func (h *handlers) endpoints() []oslomsg.Endpoint {
	return h.sender.guarded([]oslomsg.Endpoint{
		{Minor: 4, Methods: h.stateMethods()},
		{Minor: 10, Methods: h.dhcpMethods()},
		{Minor: 9, Methods: h.l2Methods()},
		{Minor: 1, Methods: h.objectMethods()},
		{Minor: 3, Methods: h.securityGroupMethods()},
		{Minor: 1, Methods: h.dvrMethods()},
		{Minor: 13, Methods: l3Methods()},
	})
}

// maxName is the longest name of a host, device or topic, in bytes.
const maxName = oslomsg.MaxName

// checkNames returns a TypeError if one of the texts is longer than maxName or has several lines.
func checkNames(texts ...string) error {
	for _, text := range texts {
		if len(text) > maxName || !network.IsSingleLine(text) {
			return oslomsg.NewTypeError("%q is longer than %d bytes or contains a control character",
				oslomsg.Excerpt(text), maxName)
		}
	}
	return nil
}

// maxDevices is the maximum number of devices or ports in one call. Neutron's agents send far fewer than
// maxDevices devices or ports in one call.
const maxDevices = 1000

// parseUUID parses a UUID that is written with dashes. If the text is not a UUID with dashes, parseUUID
// returns uuid.Nil, which is the ID of no object.
func parseUUID(text string) uuid.UUID {
	id, err := uuid.Parse(strings.TrimSpace(text))
	if err != nil || len(text) != 36 {
		return uuid.Nil
	}
	return id
}
