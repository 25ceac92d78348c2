package networkstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/db"
)

const groupSelect = `
	select id, project, name, description, stateful, tags, revision, created_at, updated_at,
		(select coalesce(jsonb_agg(to_jsonb(r) order by r.created_at, r.id), '[]') from security_group_rule r where r.group_id = security_group.id)
	from security_group`

var groupColumns = db.Tagged("security_group", map[string]db.Column{
	"id":          {Expr: "security_group.id", Cast: "uuid[]"},
	"project":     {Expr: "security_group.project", Cast: "text[]"},
	"name":        {Expr: "security_group.name", Cast: "text[]"},
	"description": {Expr: "security_group.description", Cast: "text[]"},
	"stateful":    {Expr: "security_group.stateful", Cast: "boolean[]"},
	"revision":    {Expr: "security_group.revision", Cast: "bigint[]"},
})

const visibleGroup = `security_group.project = %s`

func scanGroup(row pgx.CollectableRow) (network.SecurityGroup, error) {
	g := network.SecurityGroup{Rules: []network.SecurityRule{}}
	err := row.Scan(&g.ID, &g.Project, &g.Name, &g.Description, &g.Stateful, &g.Tags, &g.Revision, &g.CreatedAt, &g.UpdatedAt, &g.Rules)
	return g, err
}

// SecurityGroups lists security groups.
func (s *Store) SecurityGroups(ctx context.Context, q db.Listing) ([]network.SecurityGroup, error) {
	l := db.ListQuery{Columns: groupColumns, Table: "security_group"}
	clauses, err := l.Clauses(q, visibleGroup)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Query(ctx, groupSelect+clauses, l.Args...)
	if err != nil {
		return nil, fmt.Errorf("list security groups: %w", err)
	}
	groups, err := pgx.CollectRows(rows, scanGroup)
	return db.Page(groups, q), err
}

func missingGroup(id uuid.UUID) error {
	return missing(network.Faultf(network.SecurityGroupNotFound, "Security group %s does not exist", id))
}

// lockGroup takes a group's row lock and then reads it.
func lockGroup(ctx context.Context, tx *transaction, id uuid.UUID) (network.SecurityGroup, error) {
	if _, err := tx.Exec(ctx, `select from security_group where id = $1 for update`, id); err != nil {
		return network.SecurityGroup{}, fmt.Errorf("lock security group: %w", err)
	}
	return db.QueryOne(ctx, tx, scanGroup, missingGroup(id), groupSelect+` where id = $1`, id)
}

// CreateSecurityGroups makes groups with the rules that they begin with, all or none.
func (s *Store) CreateSecurityGroups(ctx context.Context, drafts []network.SecurityGroupChange) ([]network.SecurityGroup, error) {
	return createAll(ctx, s, drafts, createGroup)
}

func createGroup(ctx context.Context, tx *transaction, c network.SecurityGroupChange) (network.SecurityGroup, error) {
	g := network.NewSecurityGroup(uuid.New(), c)
	if err := admit(ctx, tx, network.QuotaSecurityGroups, g.Project); err != nil {
		return g, err
	}
	g, fresh, err := insertGroup(ctx, tx, g)
	if err == nil && !fresh {
		err = network.Faultf(network.DefaultExists, "Default security group already exists.")
	}
	return g, err
}

// insertGroup writes a new group with its rules and records both; it is not made if the project has its default one.
func insertGroup(ctx context.Context, tx *transaction, g network.SecurityGroup) (_ network.SecurityGroup, made bool, err error) {
	tag, err := tx.Exec(ctx, `
		insert into security_group (id, project, name, description, stateful, tags)
		values ($1, $2, $3, $4, $5, $6)
		on conflict (project) where name = 'default' do nothing`, g.ID, g.Project, g.Name, g.Description, g.Stateful, g.Tags)
	if err != nil {
		return g, false, fmt.Errorf("create security group: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return g, false, nil
	}
	for _, r := range g.WithDefaultRules().Rules {
		if err := insertRule(ctx, tx, r); err != nil {
			return g, false, err
		}
	}
	if g, err = lockGroup(ctx, tx, g.ID); err != nil {
		return g, false, err
	}
	if err := keepAndRecord(ctx, tx, mirrorGroup(g, journal.Create)); err != nil {
		return g, false, err
	}
	for _, r := range g.Rules {
		if err := keepAndRecord(ctx, tx, mirrorRule(r, journal.Create)); err != nil {
			return g, false, err
		}
	}
	return g, true, nil
}

// defaultGroup makes a project's default group if it has none, and tells its ID.
func defaultGroup(ctx context.Context, tx *transaction, project string) (id uuid.UUID, err error) {
	name, about := network.DefaultGroup, "Default security group"
	g := network.NewSecurityGroup(uuid.New(), network.SecurityGroupChange{Project: &project, Name: &name, Description: &about})
	if _, made, err := insertGroup(ctx, tx, g); err != nil || made {
		return g.ID, err
	}
	// Who was faster has committed, so that a new statement sees it.
	err = tx.QueryRow(ctx, `select id from security_group where project = $1 and name = 'default' for key share`, project).Scan(&id)
	if db.NoRows(err) {
		return id, fmt.Errorf("%w: the default security group of %s is being deleted", db.ErrRetry, project)
	}
	return id, err
}

// EnsureDefaultGroup makes a project's default group if it has none.
func (s *Store) EnsureDefaultGroup(ctx context.Context, project string) error {
	var there bool
	if err := s.db.QueryRow(ctx, `select exists (select from security_group where project = $1 and name = 'default')`, project).Scan(&there); err != nil || there {
		return err
	}
	return s.inTx(ctx, func(tx *transaction) error {
		_, err := defaultGroup(ctx, tx, project)
		return err
	})
}

// tenancy is what a project has that concerns its new ports.
type tenancy struct {
	group *uuid.UUID // its default security group, which stays until the transaction ends
	own   *int64     // how many ports it may have, if it has a limit of its own
}

func (t *tenancy) queue(batch *pgx.Batch, project string) {
	batch.Queue(heedQuota, project)
	batch.Queue(`
		select (select id from security_group where project = $1 and name = 'default' for key share),
			(select amount from quota where project = $1 and resource = 'port')`, project).
		QueryRow(func(row pgx.Row) error { return row.Scan(&t.group, &t.own) })
}

// welcome refuses a new port that its project may not have, and puts it into the project's default group if it is to be there.
func welcome(ctx context.Context, tx *transaction, p network.Port, t tenancy, byDefault bool) (network.Port, error) {
	if err := bound(ctx, tx, network.QuotaPorts, p.Project, t.own); err != nil || !byDefault {
		return p, err
	}
	group := t.group
	if group == nil {
		id, err := defaultGroup(ctx, tx, p.Project)
		if err != nil {
			return p, err
		}
		group = &id
	}
	p.SecurityGroups = []uuid.UUID{*group}
	return p, nil
}

// secure is the port in the groups that the change names, which stay at least until the transaction ends.
func secure(ctx context.Context, tx *transaction, p network.Port, c network.PortChange) (network.Port, error) {
	p, err := p.WithSecurityGroups(c)
	if err != nil || c.SecurityGroups == nil || len(p.SecurityGroups) == 0 {
		return p, err
	}
	rows, err := tx.Query(ctx, `select id from security_group where id = any($1) order by id for key share`, p.SecurityGroups)
	if err != nil {
		return p, fmt.Errorf("look for security groups: %w", err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return p, fmt.Errorf("look for security groups: %w", err)
	}
	for _, id := range p.SecurityGroups {
		if !slices.Contains(there, id) {
			return p, missingGroup(id)
		}
	}
	return p, nil
}

// UpdateSecurityGroup changes a group. If expect is not nil, it is the only revision that is changed.
func (s *Store) UpdateSecurityGroup(ctx context.Context, id uuid.UUID, c network.SecurityGroupChange, expect *int64) (network.SecurityGroup, error) {
	var after network.SecurityGroup
	err := s.inTx(ctx, func(tx *transaction) error {
		before, err := lockGroup(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := revisionIs(before.Revision, expect); err != nil {
			return err
		}
		after = before.With(c)
		switch {
		case same(before, after):
			return nil
		case before.Name == network.DefaultGroup && after.Name != before.Name:
			return network.Faultf(network.CannotUpdateDefaultGroup, "Updating default security group not allowed.")
		case before.Stateful != after.Stateful:
			if err := unused(ctx, tx, id); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `
			update security_group
			set name = $2, description = $3, stateful = $4, tags = $5
			where id = $1`, id, after.Name, after.Description, after.Stateful, after.Tags)
		if db.Violates(err, "security_group_default") {
			return network.Faultf(network.DefaultExists, "Default security group already exists.")
		}
		if err != nil {
			return fmt.Errorf("update security group: %w", err)
		}
		if after, err = touched(ctx, tx, id); err != nil {
			return err
		}
		return keepAndRecord(ctx, tx, mirrorGroup(after, journal.Update))
	})
	return after, err
}

// touched gives a locked group a new revision, which a change of its rules is, too.
func touched(ctx context.Context, tx *transaction, id uuid.UUID) (network.SecurityGroup, error) {
	if _, err := tx.Exec(ctx, `update security_group set revision = revision + 1, updated_at = now() where id = $1`, id); err != nil {
		return network.SecurityGroup{}, fmt.Errorf("update security group: %w", err)
	}
	return lockGroup(ctx, tx, id)
}

// unused refuses to go on if a port is in the locked group.
func unused(ctx context.Context, tx *transaction, id uuid.UUID) error {
	var used bool
	if err := tx.QueryRow(ctx, `select exists (select from port where security_groups @> array[$1::uuid])`, id).Scan(&used); err != nil {
		return fmt.Errorf("look for ports: %w", err)
	}
	if used {
		return network.Faultf(network.GroupInUse, "Security Group %s in use.", id)
	}
	return nil
}

// DeleteSecurityGroup deletes a group that no port is in, with its rules and those of other groups that name it.
func (s *Store) DeleteSecurityGroup(ctx context.Context, id uuid.UUID, expect *int64) error {
	return s.inTx(ctx, func(tx *transaction) error {
		g, err := lockGroup(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := revisionIs(g.Revision, expect); err != nil {
			return err
		}
		if err := unused(ctx, tx, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from security_group where id = $1`, id); err != nil {
			return fmt.Errorf("delete security group: %w", err)
		}
		return keepAndRecord(ctx, tx, mirrorGroup(g, journal.Delete))
	})
}
