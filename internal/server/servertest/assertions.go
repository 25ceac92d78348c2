package servertest

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// Same fails the test if the values `want` and `got` differ, and prints the difference.
func (s *Deployment) Same(what string, want, got any) {
	s.Helper()
	if d := cmp.Diff(want, got); d != "" {
		s.Errorf("%s differs (-want +got):\n%s", what, d)
	}
}

// AwaitActive waits until all given ports are ACTIVE.
func (s *Deployment) AwaitActive(c *Worker, ports []string) {
	s.Helper()
	for _, p := range ports {
		s.Await("port "+p+" is ACTIVE", func() string {
			_, o, err := c.Do("GET", "/networking/v2.0/ports/"+p, nil)
			if shown, _ := o["port"].(Object); shown["status"] == "ACTIVE" {
				return ""
			}
			return fmt.Sprint(o, err)
		})
	}
}

// Rows runs a query whose result has one text column, and returns the values of that column. Rows keeps its
// connection for the next call, because opening a connection costs PostgreSQL more CPU time than most
// queries. If the query fails on the kept connection, which a fault may have ended, Rows runs the query again
// on a new one.
func (s *Deployment) Rows(sql string, args ...any) []string {
	s.Helper()
	s.connMu.Lock()
	defer s.connMu.Unlock()
	if s.conn != nil {
		if list, err := queryTexts(s.Context(), s.conn, sql, args); err == nil {
			return list
		}
		_ = s.conn.Close(s.Context())
	}
	s.connect()
	list, err := queryTexts(s.Context(), s.conn, sql, args)
	if err != nil {
		s.Fatal(err)
	}
	return list
}

func queryTexts(ctx context.Context, c *pgx.Conn, sql string, args []any) ([]string, error) {
	found, err := c.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowTo[string])
}

// connect opens the connection of Rows.
func (s *Deployment) connect() {
	s.Helper()
	c, err := pgx.Connect(s.Context(), s.Database)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.Close(context.Background()) })
	s.conn = c
}

// AwaitNone waits until the query returns no rows.
func (s *Deployment) AwaitNone(what, sql string) {
	s.Helper()
	s.Await(what, func() string { return strings.Join(s.Rows(sql), "\n") })
}

// UnfinishedEntries is a query for the journal entries that are not completed.
const UnfinishedEntries = `select format('entry %s (%s %s) is %s: %s', seq, operation, object_type, state, last_error) from journal_entry where state <> 'completed' order by seq limit 5`

// Canary is the ID of the check network. The check network exists only in the controller; if it is missing,
// the controller has lost its data. The constant journal.Canary is the same ID.
const Canary = "bd8db3a8-2b30-4083-a8b3-b3fd46401142"

// AwaitMirroredAndAudited does the same as AwaitMirrored. It then checks that an audit through the worker
// `api` finds no difference.
func (s *Deployment) AwaitMirroredAndAudited(api *Worker) {
	s.Helper()
	s.AwaitMirrored()
	s.CheckAudit(api, "all journal entries were completed")
}

// AwaitMirrored waits until all journal entries are completed. AwaitMirrored then checks that the controller
// applied each change once and in the order of the journal, and that the controller has the same objects as
// berth.
func (s *Deployment) AwaitMirrored() {
	s.Helper()
	s.AwaitNone("all journal entries are completed", UnfinishedEntries)
	applied, recorded := map[string][]string{}, map[string][]string{}
	for _, seen := range s.Controller.Requests() {
		op := map[string]string{"POST": "create", "PUT": "update", "DELETE": "delete"}[seen.Method]
		if key := seen.Type + " " + seen.ID; seen.Applied && seen.ID != Canary {
			applied[key] = append(applied[key], fmt.Sprint(op, " ", seen.Revision))
		}
	}
	for _, line := range s.Rows(`
		select format('%s %s=%s %s', object_type, object_id, operation,
			case when operation = 'delete' then '0' else data->>'revision_number' end)
		from journal_entry
		where object_id <> '` + Canary + `'
		order by seq`) {
		key, change, _ := strings.Cut(line, "=")
		recorded[key] = append(recorded[key], change)
	}
	s.Same("changes in the journal and at the controller", recorded, applied)
	objects := []string{}
	for _, r := range s.Controller.Records() {
		if r.Object != nil && r.ID != Canary {
			objects = append(objects, fmt.Sprint(r.Type, " ", r.ID, " ", r.Object["name"]))
		}
	}
	s.Same("objects of berth and of the controller", s.Rows(`
		select format('%s %s %s', type, id, name)
		from (
			select 'network' as type, id, name from network
			union all select 'port', id, name from port
			union all select 'security_group', id, name from security_group
			union all select 'security_group_rule', id, '<nil>' from security_group_rule
			union all select 'subnet', id, name from subnet) as o
		order by type, id`), objects)
	for _, v := range s.Controller.Violations() {
		s.Error(v)
	}
}
