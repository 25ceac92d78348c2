package portstore_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/store/storetest"
)

// portsOfEveryKind adds 300 ports of the project big that are not ACTIVE, of every kind: without a host, with
// a failed binding, administratively down, distributed and not wired, and with one or two blocks. It also
// adds ports that InactivePorts must skip: ACTIVE ports, more distributed ACTIVE ports of the project and
// more blocks of other projects and of trunks than a page examines.
const portsOfEveryKind = `
	set local session_replication_role = replica;
	create temporary table kind (n, host, vif, admin_up, device_owner, status, blocks) as values
		(0, '', 'unbound', true, '', 'DOWN', 0), (1, '', 'unbound', true, '', 'DOWN', 2),
		(2, 'h', 'binding_failed', true, '', 'DOWN', 0), (3, 'h', 'ovs', false, '', 'DOWN', 0),
		(4, 'h', 'ovs', false, '', 'DOWN', 1), (5, '', 'distributed', true, 'network:router_interface_distributed', 'DOWN', 0),
		(6, '', 'distributed', true, 'network:router_interface_distributed', 'BUILD', 0), (7, 'h', 'ovs', true, '', 'DOWN', 1),
		(8, 'h', 'ovs', true, '', 'BUILD', 2), (9, 'h', 'ovs', true, '', 'ERROR', 1),
		(10, 'h', 'ovs', true, '', 'ACTIVE', 0), (11, '', 'distributed', true, 'network:router_interface_distributed', 'ACTIVE', 0);
	create temporary table new_port as
	select row_number() over () as number, gen_random_uuid() as id, p.project, kind.*
	from (values ('big', 10, 300), ('big', 11, 12000), ('other', 8, 11000)) as p (project, kinds, ports)
	cross join lateral generate_series(1, p.ports) i
	join kind on kind.n = case when p.ports = 300 then i % 10 else p.kinds end;
	insert into new_port select 100000 + i, gen_random_uuid(), 'big', kind.* from generate_series(1, 500) i join kind on kind.n = 10;
	insert into port (id, network_id, project, name, description, admin_up, mac, device_id, device_owner, status, host, vnic, profile, vif, port_security)
	select id, md5('net')::uuid, project, '', '', admin_up, ('02' || lpad(to_hex(number), 10, '0'))::macaddr, '', device_owner, status, host, 'normal', '{}', vif, true
	from new_port;
	insert into block (object_id, entity, host, since)
	select id, entity, '', now() from new_port join (values (1, 'L2'), (2, 'DHCP')) as e (n, entity) on e.n <= blocks;
	insert into block (object_id, entity, host, since, object_type) select gen_random_uuid(), 'x', '', now(), 'trunk' from generate_series(1, 1000)`

func TestInactivePorts_ListEachPortOnceInPages(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.ExecScript(t, url, portsOfEveryKind)
	storetest.FixPlans(t, url)
	var want []string
	err := storetest.Connect(t, url).QueryRow(t.Context(), `
		select array_agg(id::text order by id) from port where project = 'big' and status <> 'ACTIVE'`).Scan(&want)
	if err != nil || len(want) != 300 {
		t.Fatalf("ports that are not ACTIVE: got %d, error %v, want 300", len(want), err)
	}
	for limit, wantPages := range map[int]int{
		7:   43, // the last page has 6 ports
		400: 2,  // the first page ends with the port or the block with the number MaxExamined
	} {
		var got []string
		pages := 0
		for after := uuid.Nil; pages == 0 || after != uuid.Nil; pages++ {
			ids, next, err := s.Network.InactivePorts(t.Context(), "big", after, limit)
			if err != nil || len(ids) > limit {
				t.Fatalf("got %d ports on a page, error %v, want at most %d", len(ids), err, limit)
			}
			for _, id := range ids {
				got = append(got, id.String())
			}
			after = next
		}
		if d := cmp.Diff(want, got); d != "" || pages != wantPages {
			t.Errorf("%d pages of at most %d ports, want %d; the ports on all pages (-want +got):\n%s",
				pages, limit, wantPages, d)
		}
	}
}

// An update of the status alone changes no index, so PostgreSQL updates the row in place (HOT).
func TestPort_NoIndexDependsOnItsStatus(t *testing.T) {
	t.Parallel()
	var indexes []string
	err := storetest.Connect(t, storetest.URL(t)).QueryRow(t.Context(), `
		select coalesce(array_agg(d.objid::regclass::text), '{}')
		from pg_depend d
		join pg_index i on i.indexrelid = d.objid
		join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
		where d.refobjid = 'port'::regclass and a.attname in ('status', 'revision', 'updated_at', 'ignored_reports')`).Scan(&indexes)
	if err != nil || len(indexes) > 0 {
		t.Errorf("indexes that each activation of a port changes: got %v, error %v, want none", indexes, err)
	}
}
