package dataset

import "fmt"

// CompletedEntries returns SQL that inserts n completed journal entries. berth keeps completed journal
// entries until their retention time has passed.
func CompletedEntries(n int) string {
	return fmt.Sprintf(`
		insert into journal_entry (object_type, object_id, operation, data, parents, state, attempt, project, name, taken_at, finished_at)
		select 'port', md5('port' || n)::uuid::text, 'create', jsonb_build_object('name', 'port-' || n, 'description', repeat('kept ', 50)),
			array['network/' || gen_random_uuid()], 'completed', 1, 'bench', 'port-' || n, now(), now()
		from generate_series(1, %d) as n`, n)
}
