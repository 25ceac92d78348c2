package networkstore

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/db"
)

const (
	groupAttributes = `
	select id, project, name, description, stateful, tags, revision, created_at, updated_at, `
	groupSelect = groupAttributes + `
		(select coalesce(jsonb_agg(to_jsonb(r) order by r.created_at, r.id), '[]') from security_group_rule r where r.group_id = security_group.id) as rules
	from security_group`
	groupSelectWithoutRules = groupAttributes + `'[]'::jsonb as rules from security_group`
)

var groupColumns = db.Tagged("security_group", map[string]db.Column{
	"id":             {Expr: "security_group.id", Cast: "uuid[]"},
	"project":        {Expr: "security_group.project", Cast: "text[]"},
	"name":           {Expr: "security_group.name", Cast: "text[]"},
	"description":    {Expr: "security_group.description", Cast: "text[]"},
	"stateful":       {Expr: "security_group.stateful", Cast: "boolean[]"},
	"revision":       {Expr: "security_group.revision", Cast: "bigint[]"},
	FieldServingHost: {Test: "security_group.id in (" + groupsOnHost + ")", Cast: "text[]", Unsorted: true},
	fieldRemoteOnHost: {
		Test:     "security_group.id in (" + remoteGroupsOnHost + ")",
		Cast:     "text[]",
		Unsorted: true,
	},
})

var visibleGroup = db.Visibility{Condition: `security_group.project = $project`}

func scanGroup(row pgx.CollectableRow) (network.SecurityGroup, error) {
	return pgx.RowToStructByName[network.SecurityGroup](row)
}

// SecurityGroups lists security groups.
func (s *Store) SecurityGroups(ctx context.Context, q db.Listing) ([]network.SecurityGroup, error) {
	l := db.ListQuery{Columns: groupColumns, Table: "security_group"}
	clauses, err := l.Clauses(q, visibleGroup)
	if err != nil {
		return nil, err
	}
	columns := groupSelect
	if !q.Needs("security_group_rules") {
		columns = groupSelectWithoutRules
	}
	rows, err := s.db.Query(ctx, columns+clauses, l.Args...)
	if err != nil {
		return nil, fmt.Errorf("list security groups: %w", err)
	}
	groups, err := pgx.CollectRows(rows, scanGroup)
	return db.Page(groups, q), err
}

// GroupNotFound returns the fault of a request that names a security group that does not exist.
func GroupNotFound(id uuid.UUID) error {
	return NotFound(network.Faultf(network.SecurityGroupNotFound, "Security group %s does not exist", id))
}

// lockGroup locks the group's row and then reads the group.
func lockGroup(ctx context.Context, tx *Transaction, id uuid.UUID) (network.SecurityGroup, error) {
	if err := lockGroups(ctx, tx, id); err != nil {
		return network.SecurityGroup{}, err
	}
	return db.QueryOne(ctx, tx, scanGroup, GroupNotFound(id), groupSelect+` where id = $1`, id)
}

// lockGroups locks the rows of groups.
func lockGroups(ctx context.Context, tx *Transaction, ids ...uuid.UUID) error {
	locked, err := db.QueryAll(ctx, tx, pgx.RowTo[uuid.UUID],
		`select id from security_group where id = any($1) order by id for update`, ids)
	if err != nil {
		return fmt.Errorf("lock security groups: %w", err)
	}
	for _, id := range ids {
		if !slices.Contains(locked, id) {
			return GroupNotFound(id)
		}
	}
	return nil
}

// CreateSecurityGroups creates groups with their initial rules in one transaction.
func (s *Store) CreateSecurityGroups(
	ctx context.Context,
	drafts []network.SecurityGroupChange,
) ([]network.SecurityGroup, error) {
	return CreateAll(ctx, s.inPreparedTx, drafts, createGroup)
}

func createGroup(
	ctx context.Context,
	tx *Transaction,
	c network.SecurityGroupChange,
) (network.SecurityGroup, error) {
	g := network.NewSecurityGroup(uuid.New(), c)
	if err := CheckQuota(ctx, tx, network.QuotaSecurityGroups, g.Project, 1); err != nil {
		return g, err
	}
	if err := CheckQuota(ctx, tx, network.QuotaSecurityRules, g.Project, len(g.WithDefaultRules().Rules)); err != nil {
		return g, err
	}
	g, created, err := insertGroup(ctx, tx, g)
	if err == nil && !created {
		err = network.Faultf(network.DefaultExists, "Default security group already exists.")
	}
	return g, err
}

// insertGroup inserts a security group with its rules, and writes the journal entries of the group and the
// rules. The result `created` is false if the group is a default group and the project already has one.
func insertGroup(
	ctx context.Context,
	tx *Transaction,
	g network.SecurityGroup,
) (_ network.SecurityGroup, created bool, err error) {
	tag, err := tx.Exec(ctx, `
		insert into security_group (id, project, name, description, stateful, tags)
		values (@id, @project, @name, @description, @stateful, @tags)
		on conflict (project) where name = 'default' do nothing`, pgx.StrictNamedArgs{
		"id":          g.ID,
		"project":     g.Project,
		"name":        g.Name,
		"description": g.Description,
		"stateful":    g.Stateful,
		"tags":        g.Tags,
	})
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
	if err := RecordWithReferences(ctx, tx, mirrorGroup(g, journal.Create)); err != nil {
		return g, false, err
	}
	for _, r := range g.Rules {
		if err := RecordWithReferences(ctx, tx, mirrorRule(r, journal.Create)); err != nil {
			return g, false, err
		}
	}
	return g, true, nil
}

// EnsureDefaultGroup creates a project's default security group if the project has none, and returns the ID
// of the default security group.
func EnsureDefaultGroup(ctx context.Context, tx *Transaction, project string) (id uuid.UUID, err error) {
	name, description := network.DefaultGroup, "Default security group"
	g := network.NewSecurityGroup(uuid.New(),
		network.SecurityGroupChange{Project: &project, Name: &name, Description: &description})
	if g, created, err := insertGroup(ctx, tx, g); err != nil || created {
		tx.Audit(nil, g)
		return g.ID, err
	}
	// A concurrent transaction has created the default group and has committed, so a new statement sees the
	// group.
	err = tx.QueryRow(ctx, `select id from security_group where project = $1 and name = 'default' for key share`, project).
		Scan(&id)
	if db.NoRows(err) {
		return id, fmt.Errorf("%w: the default security group of %s is being deleted", db.ErrRetry, project)
	}
	return id, err
}

// EnsureDefaultGroup creates a project's default security group if the project has none.
func (s *Store) EnsureDefaultGroup(ctx context.Context, project string) error {
	var exists bool
	if err := s.db.QueryRow(ctx, `select exists (select from security_group where project = $1 and name = 'default')`, project).Scan(&exists); err != nil ||
		exists {
		return err
	}
	return s.inTx(ctx, func(tx *Transaction) error {
		_, err := EnsureDefaultGroup(ctx, tx, project)
		return err
	})
}

// ProjectContext is the state of a project that the creation of a port depends on.
type ProjectContext struct {
	// ID of the default security group, whose row is locked until the transaction ends; nil if the group does
	// not exist
	DefaultGroup *uuid.UUID
	PortLimit    *int64 // the project's own port quota; nil means the default
}

// Queue queues the reads of the project's state, and a shared lock on the project's quotas.
func (c *ProjectContext) Queue(batch *pgx.Batch, project string) {
	batch.Queue(lockQuotaShared, project)
	batch.Queue(`
		select (select id from security_group where project = $1 and name = 'default' for key share),
			(select amount from quota where project = $1 and resource = 'port')`, project).
		QueryRow(func(row pgx.Row) error { return row.Scan(&c.DefaultGroup, &c.PortLimit) })
}

// UpdateSecurityGroup changes a security group. If `expect` is not nil, UpdateSecurityGroup fails unless the
// group has the revision `expect`.
func (s *Store) UpdateSecurityGroup(
	ctx context.Context,
	id uuid.UUID,
	c network.SecurityGroupChange,
	expect *int64,
) (network.SecurityGroup, error) {
	var after network.SecurityGroup
	err := s.inTx(ctx, func(tx *Transaction) error {
		before, err := lockGroup(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := CheckRevision(before.Revision, expect); err != nil {
			return err
		}
		after = before.With(c)
		switch {
		case reflect.DeepEqual(before, after):
			return nil
		case before.Name == network.DefaultGroup && after.Name != before.Name:
			return network.Faultf(network.CannotUpdateDefaultGroup,
				"Updating default security group not allowed.")
		case before.Stateful != after.Stateful:
			if err := checkGroupUnused(ctx, tx, id); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `
			update security_group
			set name = @name, description = @description, stateful = @stateful, tags = @tags
			where id = @id`, pgx.StrictNamedArgs{
			"id":          id,
			"name":        after.Name,
			"description": after.Description,
			"stateful":    after.Stateful,
			"tags":        after.Tags,
		})
		if db.Violates(err, "security_group_default") {
			return network.Faultf(network.DefaultExists, "Default security group already exists.")
		}
		if err != nil {
			return fmt.Errorf("update security group: %w", err)
		}
		if after, err = bumpGroupRevision(ctx, tx, id); err != nil {
			return err
		}
		tx.Audit(before, after)
		return RecordWithReferences(ctx, tx, mirrorGroup(after, journal.Update))
	})
	return after, err
}

// bumpGroupRevision increments the revision of a security group whose row is locked. A change of one of the
// group's rules also increments the group's revision.
func bumpGroupRevision(ctx context.Context, tx *Transaction, id uuid.UUID) (network.SecurityGroup, error) {
	return addToGroupRevision(ctx, tx, id, 1)
}

// addToGroupRevision increments the revision of a security group whose row is locked by the number of its
// changes, and reads the group.
func addToGroupRevision(
	ctx context.Context,
	tx *Transaction,
	id uuid.UUID,
	changes int,
) (network.SecurityGroup, error) {
	if _, err := tx.Exec(ctx, `update security_group set revision = revision + $2, updated_at = now() where id = $1`, id, changes); err != nil {
		return network.SecurityGroup{}, fmt.Errorf("update security group: %w", err)
	}
	return lockGroup(ctx, tx, id)
}

// groupUsedSQL says whether a port uses a security group. PostgreSQL would otherwise search the table for the
// first port with the group, although no port may have it: it assumes that one of 200 ports has the group.
const groupUsedSQL = `
	with used as materialized (
		select id
		from port
		where security_groups @> array[$1::uuid])
	select exists (select from used)`

// checkGroupUnused fails if a port uses the locked group.
func checkGroupUnused(ctx context.Context, tx *Transaction, id uuid.UUID) error {
	var used bool
	if err := tx.QueryRow(ctx, groupUsedSQL, id).Scan(&used); err != nil {
		return fmt.Errorf("find ports of the security group: %w", err)
	}
	if used {
		return network.Faultf(network.GroupInUse, "Security Group %s in use.", id)
	}
	return nil
}

// DeleteSecurityGroup deletes a security group that no port uses, together with the group's rules and with
// the rules of other groups that refer to the deleted group, and increments the revisions of these other
// groups.
func (s *Store) DeleteSecurityGroup(ctx context.Context, id uuid.UUID, expect *int64) error {
	return s.inTx(ctx, func(tx *Transaction) error {
		const referring = `select group_id from security_group_rule where remote_group = $1`
		if _, err := tx.Exec(ctx, `select from security_group where id = $1 or id in (`+referring+`) order by id for update`, id); err != nil {
			return fmt.Errorf("lock security groups: %w", err)
		}
		g, err := lockGroup(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := CheckRevision(g.Revision, expect); err != nil {
			return err
		}
		if err := checkGroupUnused(ctx, tx, id); err != nil {
			return err
		}
		others, err := db.QueryAll(ctx, tx, pgx.RowTo[uuid.UUID],
			referring+` and group_id <> $1 group by group_id order by group_id`, id)
		if err == nil {
			_, err = tx.Exec(ctx, `delete from security_group where id = $1`, id)
		}
		if err != nil {
			return fmt.Errorf("delete security group: %w", err)
		}
		tx.Audit(g, nil)
		if err := RecordWithReferences(ctx, tx, mirrorGroup(g, journal.Delete)); err != nil {
			return err
		}
		return recordGroups(ctx, tx, bumpGroupRevision, others...)
	})
}
