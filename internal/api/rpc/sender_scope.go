package rpc

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
)

// scope returns the condition for the objects that a host may read for one of its tasks.
type scope = func(host string) db.Condition

// source is how a call reads objects of one type. A sender may read the objects in the scopes.
type source[T any] struct {
	list   func(context.Context, db.Listing) ([]T, error)
	ids    func(context.Context, db.Listing) ([]uuid.UUID, error)
	pages  pages
	scopes []scope
}

// eachReadable reads the objects that match the conditions in parts, and calls `use` with each object. For a
// sender, eachReadable first checks with readable that the sender may read all of them.
func eachReadable[T any](
	ctx context.Context,
	s *sender,
	from source[T],
	where []db.Condition,
	use func(T) error,
) error {
	ids, err := s.readable(ctx, from.ids, where, from.scopes...)
	if err != nil {
		return err
	}
	return eachPage(ctx, from.list, ids, from.pages, func(page []T) error {
		for _, v := range page {
			if err := use(v); err != nil {
				return err
			}
		}
		return nil
	})
}

// readable returns the IDs of the objects that match the conditions. readable refuses the call of a sender if
// one of these objects is outside all given scopes of the sender: an Open vSwitch agent remembers each answer
// until it restarts, so an incomplete answer would hide the object from the agent even after the agent needs
// the object. An agent asks for objects by their IDs, or by the ID of their network or security group;
// readable refuses other queries of a sender. readable reads only the IDs of the objects, because a host
// knows the IDs of many objects that it may not read.
func (s *sender) readable(
	ctx context.Context,
	ids func(context.Context, db.Listing) ([]uuid.UUID, error),
	where []db.Condition,
	scopes ...scope,
) ([]uuid.UUID, error) {
	if s == nil {
		return ids(ctx, db.Listing{Where: where})
	}
	if !slices.ContainsFunc(where, func(c db.Condition) bool { return idFields[c.Field] }) {
		// without reading all objects of the cloud
		return nil, s.refuse(ctx, refusedRead, "the query names no IDs of objects")
	}
	all, err := ids(ctx, db.Listing{Where: where})
	if err != nil {
		return nil, err
	}
	unreadable := slices.Clone(all)
	for _, scope := range scopes {
		if len(unreadable) == 0 {
			return all, nil
		}
		found, err := ids(ctx, db.Listing{Where: append(slices.Clip(where), scope(s.Host))})
		if err != nil {
			return nil, err
		}
		unreadable = idsExcept(unreadable, found)
	}
	if len(unreadable) > 0 {
		return nil, s.refuse(ctx, refusedRead, "this host does not serve the object %s", unreadable[0])
	}
	return all, nil
}

// readablePorts returns the IDs of the ports that match the conditions. For a sender, readablePorts leaves
// out ports that neither have a binding to this host nor are on a network that the host's DHCP agent serves.
func (h *handlers) readablePorts(ctx context.Context, where ...db.Condition) ([]uuid.UUID, error) {
	if h.sender == nil {
		return h.Store.PortIDs(ctx, db.Listing{Where: where})
	}
	found, err := h.Store.PortIDs(ctx,
		db.Listing{Where: append(slices.Clip(where), networkstore.OnHost(h.sender.Host))})
	if err != nil {
		return nil, err
	}
	served, err := h.Store.PortIDs(ctx,
		db.Listing{Where: append(slices.Clip(where), networkstore.ServedByDHCPOf(h.sender.Host))})
	return append(found, idsExcept(served, found)...), err
}

// idsExcept returns the IDs that are not among the IDs `known`.
func idsExcept(ids, known []uuid.UUID) []uuid.UUID {
	isKnown := make(map[uuid.UUID]bool, len(known))
	for _, id := range known {
		isKnown[id] = true
	}
	return slices.DeleteFunc(ids, func(id uuid.UUID) bool { return isKnown[id] })
}

// groupMembers returns the IDs of the ports that match the conditions and that are not among the ports
// `known`; the sender reads these ports in a reduced form. The ports are members of security groups, which a
// condition names; if the sender does not need the members of one of these groups, groupMembers refuses the
// call. Without a sender or without a condition on security groups, groupMembers returns no ports.
func (h *handlers) groupMembers(
	ctx context.Context,
	where []db.Condition,
	known []uuid.UUID,
) ([]uuid.UUID, error) {
	at := slices.IndexFunc(where, func(c db.Condition) bool { return c.Field == "security_group" })
	if h.sender == nil || at < 0 {
		return nil, nil
	}
	groups := []db.Condition{{Field: "id", In: where[at].In}}
	_, err := h.sender.readable(ctx, h.Store.SecurityGroupIDs, groups,
		networkstore.OnHost, networkstore.RemoteGroupsOf)
	if err != nil {
		return nil, err
	}
	all, err := h.Store.PortIDs(ctx, db.Listing{Where: where})
	return idsExcept(all, known), err
}

// reducedPort returns a port with only those attributes that an agent on another host needs to filter the
// traffic of this port.
func reducedPort(p network.Port) network.Port {
	return network.Port{
		ID:             p.ID,
		Network:        p.Network,
		MAC:            p.MAC,
		Addresses:      p.Addresses,
		AddressPairs:   p.AddressPairs,
		SecurityGroups: p.SecurityGroups,
		PortSecurity:   p.PortSecurity,
		AdminUp:        p.AdminUp,
		Status:         p.Status,
		Revision:       p.Revision,
		CreatedAt:      p.CreatedAt,
		UpdatedAt:      p.UpdatedAt,
	}
}

// requireDHCPService returns an error if the DHCP agent of the sender does not serve a network. A DHCP agent
// expects this error after another DHCP agent has taken over the network.
func (h *handlers) requireDHCPService(ctx context.Context, id uuid.UUID) error {
	if h.sender == nil {
		return nil
	}
	hosts, err := h.Store.DHCPHosts(ctx, id)
	if err != nil || slices.Contains(hosts, h.sender.Host) {
		return err
	}
	h.sender.recordRefusal(ctx, refusedOwner,
		"the DHCP agent of this host does not serve the network "+id.String())
	return network.NotFound(network.NetworkNotFound, "Network", id)
}

// requireOwnDHCPDevice refuses a call in which the sender gives a port on a network a device_id that is not
// that of its DHCP agent: the DHCP agent of another host would take the port for its own, although the port
// is not bound to this host.
func (h *handlers) requireOwnDHCPDevice(ctx context.Context, on uuid.UUID, device string) error {
	if h.sender == nil || strings.HasPrefix(device, network.DHCPDeviceID(h.sender.Host, on)) {
		return nil
	}
	return h.sender.refuse(ctx, refusedOwner, "the device_id is not that of the DHCP agent of this host")
}
