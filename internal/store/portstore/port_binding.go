package portstore

import (
	"context"

	"github.com/google/uuid"

	"berth/internal/network"
)

// CreateBinding adds an inactive binding of a port to a host, for example before a live migration.
// CreateBinding fails if no agent on the host can wire the port.
func (s *Store) CreateBinding(
	ctx context.Context,
	id uuid.UUID,
	c network.BindingChange,
) (network.Port, error) {
	return s.changeBindings(ctx, id, func(tx *transaction, h lockedPort) (network.Port, error) {
		agents, err := readHostAgents(ctx, tx, *c.Host)
		if err != nil {
			return h.Port, err
		}
		return h.AddInactiveBinding(c, agents)
	})
}

// UpdateBinding changes the active or inactive binding of a port to a host.
func (s *Store) UpdateBinding(
	ctx context.Context,
	id uuid.UUID,
	host string,
	c network.BindingChange,
) (network.Port, error) {
	return s.changeBindingOnHost(
		ctx,
		id,
		host,
		network.PortChange{VNIC: c.VNIC, Profile: c.Profile},
		func(tx *transaction, h lockedPort) (network.Port, error) {
			agents, err := readHostAgents(ctx, tx, host)
			if err != nil {
				return h.Port, err
			}
			return h.UpdateInactiveBinding(host, c, agents)
		},
	)
}

// ActivateBinding moves a port to a host for which the port has an inactive binding; afterwards an agent on
// this host must wire the port. If several concurrent calls to ActivateBinding name the same port and host,
// only one call succeeds.
func (s *Store) ActivateBinding(ctx context.Context, id uuid.UUID, host string) (network.Port, error) {
	return s.changeBindings(ctx, id, func(tx *transaction, h lockedPort) (network.Port, error) {
		agents, err := readHostAgents(ctx, tx, host)
		if err != nil {
			return h.Port, err
		}
		h.dependencies.HostAgents = agents
		return h.ActivateBinding(host, h.dependencies, h.Revision+1, h.now)
	})
}

// DeleteBinding deletes the binding of a port to a host. If DeleteBinding deletes the active binding of a
// port, the port is unbound.
func (s *Store) DeleteBinding(ctx context.Context, id uuid.UUID, host string) error {
	none := ""
	_, err := s.changeBindingOnHost(
		ctx, id, host, network.PortChange{Host: &none},
		func(_ *transaction, h lockedPort) (network.Port, error) { return h.DeleteInactiveBinding(host) },
	)
	return err
}

// changeBindingOnHost changes the binding of a port to a host. If the binding on the host is active,
// changeBindingOnHost applies the port change `own` to the port; if the binding is inactive,
// changeBindingOnHost applies the function `other` to the binding.
func (s *Store) changeBindingOnHost(
	ctx context.Context,
	id uuid.UUID,
	host string,
	own network.PortChange,
	other func(*transaction, lockedPort) (network.Port, error),
) (network.Port, error) {
	var after network.Port
	err := s.inTx(ctx, func(tx *transaction) error {
		h, err := lockPortAndNetwork(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := h.CheckMultipleBindings(); err != nil {
			return err
		}
		if h.Host == host {
			after, err = changePort(ctx, tx, h, own)
		} else {
			after, err = writeBindings(ctx, tx, h, other)
		}
		tx.Audit(h.Port, after)
		return err
	})
	return after, err
}

// changeBindings changes the bindings of a port under the port's row lock.
func (s *Store) changeBindings(
	ctx context.Context,
	id uuid.UUID,
	change func(*transaction, lockedPort) (network.Port, error),
) (network.Port, error) {
	var after network.Port
	err := s.inTx(ctx, func(tx *transaction) error {
		h, err := lockPort(ctx, tx, id)
		if err != nil {
			return err
		}
		after, err = writeBindings(ctx, tx, h, change)
		tx.Audit(h.Port, after)
		return err
	})
	return after, err
}

// writeBindings changes the bindings of a locked port and writes the result.
func writeBindings(
	ctx context.Context,
	tx *transaction,
	h lockedPort,
	change func(*transaction, lockedPort) (network.Port, error),
) (network.Port, error) {
	p, err := change(tx, h)
	if err != nil {
		return p, err
	}
	if _, err := writePort(ctx, tx, h.Port, p.UpdateStatus(h.now), network.PortCause{}); err != nil {
		return p, err
	}
	return portByID(ctx, tx, h.ID)
}
