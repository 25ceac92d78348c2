package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
)

// ProposeBinding ties a port to a host that it may move to. The agents there have to be able to wire it.
func (s *Store) ProposeBinding(ctx context.Context, id uuid.UUID, c network.BindingChange) (network.Port, error) {
	return s.rebind(ctx, id, func(tx pgx.Tx, h held) (network.Port, error) {
		agents, err := hostAgents(ctx, tx, *c.Host, h.Network)
		if err != nil {
			return h.Port, err
		}
		return h.Propose(c, agents)
	})
}

// UpdateBinding changes a port's tie to a host, be it its own or one that it may move to.
func (s *Store) UpdateBinding(ctx context.Context, id uuid.UUID, host string, c network.BindingChange) (network.Port, error) {
	p, err := s.Port(ctx, id)
	if err != nil {
		return p, err
	}
	if err := p.Movable(); err != nil {
		return p, err
	}
	if p.Host == host {
		return s.UpdatePort(ctx, id, network.PortChange{VNIC: c.VNIC, Profile: c.Profile}, &p.Revision)
	}
	return s.rebind(ctx, id, func(tx pgx.Tx, h held) (network.Port, error) {
		agents, err := hostAgents(ctx, tx, host, h.Network)
		if err != nil {
			return h.Port, err
		}
		return h.Repropose(host, c, agents)
	})
}

// ActivateBinding moves a port to a host that it is tied to, where it has to be wired anew. Of several who ask for the
// same move at once, one does it.
func (s *Store) ActivateBinding(ctx context.Context, id uuid.UUID, host string) (network.Port, error) {
	return s.rebind(ctx, id, func(tx pgx.Tx, h held) (network.Port, error) {
		agents, err := hostAgents(ctx, tx, host, h.Network)
		if err != nil {
			return h.Port, err
		}
		h.around.Agents = agents
		return h.Activate(host, h.around, h.Revision+1, h.now)
	})
}

// DeleteBinding unties a port from a host; if that is its own, it is not bound any more.
func (s *Store) DeleteBinding(ctx context.Context, id uuid.UUID, host string) error {
	p, err := s.Port(ctx, id)
	if err != nil {
		return err
	}
	if err := p.Movable(); err != nil {
		return err
	}
	if p.Host == host {
		none := ""
		_, err := s.UpdatePort(ctx, id, network.PortChange{Host: &none}, &p.Revision)
		return err
	}
	_, err = s.rebind(ctx, id, func(_ pgx.Tx, h held) (network.Port, error) { return h.Withdraw(host) })
	return err
}

// rebind changes the bindings of a port under its row's lock.
func (s *Store) rebind(ctx context.Context, id uuid.UUID, change func(pgx.Tx, held) (network.Port, error)) (network.Port, error) {
	var after network.Port
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		h, err := lockPort(ctx, tx, id)
		if err != nil {
			return err
		}
		p, err := change(tx, h)
		if err != nil {
			return err
		}
		p = p.Judge(h.now)
		if err := writePort(ctx, tx, h.Port, p, ""); err != nil {
			return err
		}
		if after, err = portByID(ctx, tx, id); err != nil || p.Host == h.Host {
			return err
		}
		return publish(ctx, tx, h.Port, after)
	})
	return after, err
}
