package kills

import (
	"encoding/json"

	"berth/internal/auditlog"
	"berth/internal/server/servertest"
)

// checkAuditLogComplete checks that each committed change of an object has exactly one record in the audit
// log, that no record is about a change that was not committed, and that the hash chain is intact.
func checkAuditLogComplete(s *servertest.Deployment) {
	s.Helper()
	const log = `
		with log as materialized (
			select record ->> 'object_id' as id, (record ->> 'before')::bigint as before, (record ->> 'after')::bigint as after, record ->> 'route' as route
			from (select record from audit_pending union all select record from audit_record) as all_records
			where record ->> 'outcome' = 'success'),
		created as (select id, count(*) as n from log where before is null and after is not null group by id),
		deleted as (select id, count(*) as n from log where before is not null and after is null group by id),
		objects as (
			select id::text from network union all select id::text from subnet union all select id::text from port
			union all select id::text from security_group union all select uuid from consumer)
		`
	for what, sql := range map[string]string{
		"object whose creation has not exactly one record": `
			select o.id from objects o left join created c on c.id = o.id where c.n is distinct from 1`,
		"record of the creation of an object that does not exist": `
			select c.id from created c
			where c.id not in (select id from objects) and c.id not in (select id from deleted) and c.id not in (select uuid from provider)`,
		"deleted object whose deletion has not exactly one record": `
			select distinct e.object_id from journal_entry e left join deleted d on d.id = e.object_id
			where e.operation = 'delete' and e.object_type = 'port' and d.n is distinct from 1`,
		"record of the deletion of an object that exists": `
			select id from deleted where id in (select id from objects)`,
		"renamed network whose renaming has not exactly one record": `
			select n.id::text from network n
			where n.name like 'network-renamed-%' and 1 <> (
				select count(*) from log l where l.id = n.id::text and l.route = '/networking/v2.0/networks/{id}' and l.after > l.before)`,
	} {
		if found := s.Rows(log + sql); len(found) > 0 {
			s.Errorf("check the audit log after the crashes: want no %s, found %v", what, found)
		}
	}
	chain := s.Rows(
		`select '{"sequence":' || sequence || ',"hash":"' || encode(hash, 'hex') || '","record":' || record || '}' from audit_record order by sequence`,
	)
	page := auditlog.Page{Records: make([]auditlog.Sealed, len(chain))}
	for i, line := range chain {
		if err := json.Unmarshal([]byte(line), &page.Records[i]); err != nil {
			s.Fatal(err)
		}
	}
	v := auditlog.Verifier{}
	if err := v.Check(page); err != nil || len(chain) == 0 {
		s.Errorf(
			"verify the audit log after the crashes: got %d sealed records and the error %v, want some and none",
			len(chain),
			err,
		)
	}
}
