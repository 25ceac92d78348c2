package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// untrustedRoles lists the roles that may create objects in the schemas that PostgreSQL searches for berth's
// tables, functions and operators, and the roles that own such objects there. Superusers, the owners of the
// schema and of the database, and berth's own role are trusted.
const untrustedRoles = `
	with searched as (
		select n.oid, n.nspowner, n.nspacl from pg_namespace n where n.nspname = any (current_schemas(false))
	), found as (
		select a.grantee as role
		from searched n, lateral aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
		where a.privilege_type = 'CREATE'
		union select c.relowner from pg_class c join searched n on n.oid = c.relnamespace
		union select p.proowner from pg_proc p join searched n on n.oid = p.pronamespace
		union select o.oprowner from pg_operator o join searched n on n.oid = o.oprnamespace
		union select t.typowner from pg_type t join searched n on n.oid = t.typnamespace
	)
	select case f.role when 0 then 'every role (PUBLIC)' else pg_get_userbyid(f.role)::text end as name
	from found f
	where f.role not in (
		select nspowner from searched
		union select datdba from pg_database where datname = current_database()
		union select oid from pg_roles where rolsuper or rolname = current_user)
	order by name`

// UntrustedRoles returns the roles that can run code with the rights of berth's role in the database with the
// given URL: PostgreSQL prefers a function or an operator that they create if its parameters have exactly the
// types of the arguments, and runs the triggers of their tables.
func UntrustedRoles(ctx context.Context, url string) (names []string, err error) {
	err = withOneConn(ctx, url, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, untrustedRoles)
		if err != nil {
			return err
		}
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return names, err
}
