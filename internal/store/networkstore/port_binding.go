package networkstore

import (
	"context"

	"github.com/google/uuid"

	"berth/internal/network"
)

// ProposeBinding ties a port to a host that it may move to. The agents there have to be able to wire it.
func (s *Store) ProposeBinding(ctx context.Context, id uuid.UUID, c network.BindingChange) (network.Port, error) {
	return s.rebind(ctx, id, func(tx *transaction, h held) (network.Port, error) {
		agents, err := hostAgents(ctx, tx, *c.Host, h.Network)
		if err != nil {
			return h.Port, err
		}
		return h.AddInactiveBinding(c, agents)
	})
}

// UpdateBinding changes a port's tie to a host, be it its own or one that it may move to.
func (s *Store) UpdateBinding(ctx context.Context, id uuid.UUID, host string, c network.BindingChange) (network.Port, error) {
	return s.retie(ctx, id, host, network.PortChange{VNIC: c.VNIC, Profile: c.Profile}, func(tx *transaction, h held) (network.Port, error) {
		agents, err := hostAgents(ctx, tx, host, h.Network)
		if err != nil {
			return h.Port, err
		}
		return h.UpdateInactiveBinding(host, c, agents)
	})
}

// ActivateBinding moves a port to a host that it is tied to, where it has to be wired anew. Of several who ask for the
// same move at once, one does it.
func (s *Store) ActivateBinding(ctx context.Context, id uuid.UUID, host string) (network.Port, error) {
	return s.rebind(ctx, id, func(tx *transaction, h held) (network.Port, error) {
		agents, err := hostAgents(ctx, tx, host, h.Network)
		if err != nil {
			return h.Port, err
		}
		h.around.HostAgents = agents
		return h.ActivateBinding(host, h.around, h.Revision+1, h.now)
	})
}

// DeleteBinding unties a port from a host; if that is its own, it is not bound any more.
func (s *Store) DeleteBinding(ctx context.Context, id uuid.UUID, host string) error {
	none := ""
	_, err := s.retie(ctx, id, host, network.PortChange{Host: &none}, func(_ *transaction, h held) (network.Port, error) { return h.DeleteInactiveBinding(host) })
	return err
}

// retie changes a port's tie to a host: as a change of the port if that is its own, else as that function says.
func (s *Store) retie(ctx context.Context, id uuid.UUID, host string, own network.PortChange, other func(*transaction, held) (network.Port, error)) (network.Port, error) {
	var after network.Port
	err := s.inTx(ctx, func(tx *transaction) error {
		h, err := lockPlaced(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := h.CheckMultipleBindings(); err != nil {
			return err
		}
		if h.Host == host {
			after, err = changePort(ctx, tx, h, own)
		} else {
			after, err = rebound(ctx, tx, h, other)
		}
		return err
	})
	return after, err
}

// rebind changes the bindings of a port under its row's lock.
func (s *Store) rebind(ctx context.Context, id uuid.UUID, change func(*transaction, held) (network.Port, error)) (network.Port, error) {
	var after network.Port
	err := s.inTx(ctx, func(tx *transaction) error {
		h, err := lockPort(ctx, tx, id)
		if err != nil {
			return err
		}
		after, err = rebound(ctx, tx, h, change)
		return err
	})
	return after, err
}

// rebound is a locked port with its bindings changed.
func rebound(ctx context.Context, tx *transaction, h held, change func(*transaction, held) (network.Port, error)) (network.Port, error) {
	p, err := change(tx, h)
	if err != nil {
		return p, err
	}
	if err := writePort(ctx, tx, h.Port, p.UpdateStatus(h.now), ""); err != nil {
		return p, err
	}
	after, err := portByID(ctx, tx, h.ID)
	if err != nil || after.Host == h.Host {
		return after, err
	}
	return after, publish(ctx, tx, h.Port, after)
}
