package networkstore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/db"
)

const ruleSelect = `
	select to_jsonb(security_group_rule)
	from security_group_rule`

var ruleColumns = map[string]db.Column{
	"id":           {Expr: "security_group_rule.id", Cast: "uuid[]"},
	"group":        {Expr: "security_group_rule.group_id", Cast: "uuid[]"},
	"project":      {Expr: "security_group_rule.project", Cast: "text[]"},
	"description":  {Expr: "security_group_rule.description", Cast: "text[]"},
	"direction":    {Expr: "security_group_rule.direction", Cast: "text[]"},
	"ethertype":    {Expr: "security_group_rule.ethertype", Cast: "text[]"},
	"protocol":     {Expr: "security_group_rule.protocol", Cast: "text[]"},
	"port_min":     {Expr: "security_group_rule.port_min", Cast: "bigint[]", Unsorted: true},
	"port_max":     {Expr: "security_group_rule.port_max", Cast: "bigint[]", Unsorted: true},
	"remote_ip":    {Expr: "security_group_rule.remote_ip", Cast: "text[]"},
	"remote_group": {Expr: "security_group_rule.remote_group", Cast: "uuid[]", Unsorted: true},
	"revision":     {Expr: "security_group_rule.revision", Cast: "bigint[]"},
	FieldServingHost: {
		Test:     "security_group_rule.group_id in (" + groupsOnHost + ")",
		Cast:     "text[]",
		Unsorted: true,
	},
}

// visibleRule has the reasons for which a project sees a security group rule: a rule of the project, or of a
// security group of the project.
var visibleRule = []db.Visibility{
	{Condition: `security_group_rule.project = $project`},
	{Condition: `project = $project`, Parent: "security_group", Key: "group_id"},
}

// SecurityRules lists security group rules.
func (s *Store) SecurityRules(ctx context.Context, q db.Listing) ([]network.SecurityRule, error) {
	l := db.ListQuery{Columns: ruleColumns, Table: "security_group_rule"}
	clauses, err := l.Clauses(q, visibleRule...)
	if err != nil {
		return nil, err
	}
	rules, err := db.QueryAll(ctx, s.db, pgx.RowTo[network.SecurityRule], ruleSelect+clauses, l.Args...)
	if err != nil {
		return nil, fmt.Errorf("list security group rules: %w", err)
	}
	return db.Page(rules, q), nil
}

func ruleByID(ctx context.Context, q db.Querier, id uuid.UUID) (network.SecurityRule, error) {
	missing := NotFound(network.Faultf(network.RuleNotFound, "Security group rule %s does not exist", id))
	return db.QueryOne(ctx, q, pgx.RowTo[network.SecurityRule], missing, ruleSelect+` where id = $1`, id)
}

// CreateSecurityRules adds rules to groups in one transaction. What it reads of the other rules of a group
// and of a project does not grow with the number of new rules.
func (s *Store) CreateSecurityRules(
	ctx context.Context,
	drafts []network.SecurityRuleChange,
) ([]network.SecurityRule, error) {
	rules := make([]network.SecurityRule, len(drafts))
	for i, c := range drafts {
		var err error
		if rules[i], err = network.NewSecurityRule(uuid.New(), c); err != nil {
			return nil, err
		}
	}
	inTx := func(ctx context.Context, create func(*Transaction) error) error {
		return s.inPreparedTx(ctx, func(tx *Transaction) error {
			if err := admitRules(ctx, tx, rules); err != nil {
				return err
			}
			return create(tx)
		})
	}
	return CreateAll(ctx, inTx, rules, createRule, recordGroupsOf)
}

// admitRules checks that the quotas of the projects allow the new rules, and locks the groups of the rules.
func admitRules(ctx context.Context, tx *Transaction, rules []network.SecurityRule) error {
	ofProject := map[string]int{}
	for _, r := range rules {
		ofProject[r.Project]++
	}
	for _, project := range slices.Sorted(maps.Keys(ofProject)) {
		if err := CheckQuota(ctx, tx, network.QuotaSecurityRules, project, ofProject[project]); err != nil {
			return err
		}
	}
	groups, _ := groupsOf(rules)
	return lockGroups(ctx, tx, groups...)
}

// groupsOf returns the groups of the rules, each once, and the number of rules of each group.
func groupsOf(rules []network.SecurityRule) (groups []uuid.UUID, counts map[uuid.UUID]int) {
	counts = map[uuid.UUID]int{}
	for _, r := range rules {
		if counts[r.Group]++; counts[r.Group] == 1 {
			groups = append(groups, r.Group)
		}
	}
	return groups, counts
}

// recordGroupsOf increments the revision of each security group by the number of its new rules, and writes
// one journal entry for each group.
func recordGroupsOf(ctx context.Context, tx *Transaction, rules []network.SecurityRule) error {
	groups, counts := groupsOf(rules)
	read := func(ctx context.Context, tx *Transaction, id uuid.UUID) (network.SecurityGroup, error) {
		return addToGroupRevision(ctx, tx, id, counts[id])
	}
	return recordGroups(ctx, tx, read, groups...)
}

// createRule inserts a rule of a locked group, and records it.
func createRule(ctx context.Context, tx *Transaction, r network.SecurityRule) (network.SecurityRule, error) {
	if err := insertRule(ctx, tx, r); err != nil {
		return r, err
	}
	r, err := ruleByID(ctx, tx, r.ID)
	if err != nil {
		return r, err
	}
	return r, RecordWithReferences(ctx, tx, mirrorRule(r, journal.Create))
}

// insertRule inserts a rule of a locked group. insertRule returns a fault if the group already has an equal
// rule, which it finds with the index security_group_rule_same.
func insertRule(ctx context.Context, tx *Transaction, r network.SecurityRule) error {
	remote := ""
	if r.RemoteIP.IsValid() {
		remote = r.RemoteIP.String()
	}
	equal, err := db.QueryAll(
		ctx,
		tx,
		pgx.RowTo[uuid.UUID],
		`
		select id from security_group_rule
		where group_id = $1 and direction = $2 and ethertype = $3 and protocol = any($4)
			and coalesce(port_min, -1) = coalesce($5::integer, -1) and coalesce(port_max, -1) = coalesce($6::integer, -1)
			and remote_ip = any($7)
			and coalesce(remote_group, '00000000-0000-0000-0000-000000000000') = coalesce($8::uuid, '00000000-0000-0000-0000-000000000000')`,
		r.Group,
		r.Direction,
		r.EtherType,
		r.EqualProtocols(),
		r.PortMin,
		r.PortMax,
		r.EqualRemoteIPs(),
		r.RemoteGroup,
	)
	if err == nil && len(equal) > 0 {
		return network.Faultf(network.RuleExists, "Security group rule already exists. Rule id is %s.",
			equal[0])
	}
	if err == nil {
		_, err = tx.Exec(
			ctx,
			`
			insert into security_group_rule (id, group_id, project, description, direction, ethertype, protocol, port_min, port_max, remote_ip, remote_group)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			r.ID,
			r.Group,
			r.Project,
			r.Description,
			r.Direction,
			r.EtherType,
			r.Protocol,
			r.PortMin,
			r.PortMax,
			remote,
			r.RemoteGroup,
		)
	}
	switch {
	case db.Violates(err, "security_group_rule_remote_group_fkey"):
		return GroupNotFound(*r.RemoteGroup)
	case err != nil:
		return fmt.Errorf("create security group rule: %w", err)
	default:
		return nil
	}
}

// UpdateSecurityRule changes the description of a rule. If `expect` is not nil, UpdateSecurityRule fails
// unless the rule has the revision `expect`.
func (s *Store) UpdateSecurityRule(
	ctx context.Context,
	id uuid.UUID,
	c network.SecurityRuleChange,
	expect *int64,
) (network.SecurityRule, error) {
	var after network.SecurityRule
	err := s.changeRule(ctx, id, expect, func(tx *Transaction, r network.SecurityRule) error {
		after = r
		if c.Description == nil || *c.Description == r.Description {
			return nil
		}
		_, err := tx.Exec(ctx, `
			update security_group_rule
			set description = $2, revision = revision + 1, updated_at = now()
			where id = $1`, id, *c.Description)
		if err != nil {
			return fmt.Errorf("update security group rule: %w", err)
		}
		if after, err = ruleByID(ctx, tx, id); err != nil {
			return err
		}
		tx.Audit(r, after)
		return RecordWithReferences(ctx, tx, mirrorRule(after, journal.Update))
	})
	return after, err
}

// DeleteSecurityRule deletes a rule from its security group.
func (s *Store) DeleteSecurityRule(ctx context.Context, id uuid.UUID, expect *int64) error {
	return s.changeRule(ctx, id, expect, func(tx *Transaction, r network.SecurityRule) error {
		if _, err := tx.Exec(ctx, `delete from security_group_rule where id = $1`, id); err != nil {
			return fmt.Errorf("delete security group rule: %w", err)
		}
		tx.Audit(r, nil)
		if err := RecordWithReferences(ctx, tx, mirrorRule(r, journal.Delete)); err != nil {
			return err
		}
		return recordGroups(ctx, tx, bumpGroupRevision, r.Group)
	})
}

// recordGroups writes the journal entries of locked groups whose rules changed. The function `read` returns a
// group in its new state.
func recordGroups(
	ctx context.Context,
	tx *Transaction,
	read func(context.Context, *Transaction, uuid.UUID) (network.SecurityGroup, error),
	groups ...uuid.UUID,
) error {
	for _, id := range groups {
		g, err := read(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := RecordWithReferences(ctx, tx, mirrorGroup(g, journal.Update)); err != nil {
			return err
		}
	}
	return nil
}

// changeRule changes a security group rule while the transaction holds the row lock of the rule's security
// group.
func (s *Store) changeRule(
	ctx context.Context,
	id uuid.UUID,
	expect *int64,
	change func(*Transaction, network.SecurityRule) error,
) error {
	return s.inTx(ctx, func(tx *Transaction) error {
		r, err := ruleByID(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := lockGroups(ctx, tx, r.Group); err != nil {
			return err
		}
		if r, err = ruleByID(ctx, tx, id); err != nil {
			return err
		}
		if err := CheckRevision(r.Revision, expect); err != nil {
			return err
		}
		return change(tx, r)
	})
}
