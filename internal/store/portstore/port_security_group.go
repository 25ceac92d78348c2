package portstore

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/networkstore"
)

// addDefaultGroup adds the default security group of the port's project to a port. If the parameter `group`
// is nil, addDefaultGroup creates the default group.
func addDefaultGroup(
	ctx context.Context,
	tx *transaction,
	p network.Port,
	group *uuid.UUID,
) (network.Port, error) {
	if group == nil {
		id, err := networkstore.EnsureDefaultGroup(ctx, tx.Transaction, p.Project)
		if err != nil {
			return p, err
		}
		group = &id
	}
	p.SecurityGroups = []uuid.UUID{*group}
	return p, nil
}

// applySecurityGroups sets the port's security groups to the groups that the change names.
// applySecurityGroups locks the rows of these groups, so that no other transaction deletes them before this
// transaction ends.
func applySecurityGroups(
	ctx context.Context,
	tx *transaction,
	p network.Port,
	c network.PortChange,
) (network.Port, error) {
	p, err := p.WithSecurityGroups(c)
	if err != nil || c.SecurityGroups == nil || len(p.SecurityGroups) == 0 {
		return p, err
	}
	var id uuid.UUID
	var isStateful bool
	stateful := map[uuid.UUID]bool{}
	rows, err := tx.Query(
		ctx,
		`select id, stateful from security_group where id = any($1) order by id for key share`,
		p.SecurityGroups,
	)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&id, &isStateful}, func() error {
			stateful[id] = isStateful
			return nil
		})
	}
	if err != nil {
		return p, fmt.Errorf("find security groups: %w", err)
	}
	for _, id := range p.SecurityGroups {
		if _, found := stateful[id]; !found {
			return p, networkstore.GroupNotFound(id)
		}
		if stateful[id] != stateful[p.SecurityGroups[0]] {
			return p, network.Faultf(
				network.GroupConflict,
				"Error Cannot apply both stateful and stateless security groups on the same port at the same time while attempting the operation.",
			)
		}
	}
	return p, nil
}
