package portstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// mixedProjects inserts networks, subnets, ports, security groups and rules of four projects. Many objects
// belong to one project and depend on an object of another project, and many projects see an object for two
// reasons. The parameter is the seed of the random values.
const mixedProjects = `
	select setseed(%v);
	insert into network (id, project, name, description, admin_up, shared, external, mtu, port_security, type)
	select md5('network' || n)::uuid, 'p' || floor(random() * 4), 'n' || floor(random() * 5), '', true,
		random() < 0.2, random() < 0.2, 1450, true, 'local'
	from generate_series(1, 40) n;
	insert into subnet (id, network_id, project, name, description, cidr, dhcp, pools, dns, routes, ra_mode, address_mode)
	select md5('subnet' || n)::uuid, md5('network' || 1 + floor(random() * 40))::uuid, 'p' || floor(random() * 4),
		'n' || floor(random() * 5), '', ('10.0.' || n || '.0/24')::cidr, random() < 0.5, '[]', '{}', '[]', '', ''
	from generate_series(1, 60) n;
	insert into port (id, network_id, project, name, description, admin_up, mac, device_id, device_owner, status, host, vnic,
		profile, vif, port_security)
	select md5('port' || n)::uuid, md5('network' || 1 + floor(random() * 40))::uuid, 'p' || floor(random() * 4),
		'n' || floor(random() * 5), '', true, lpad(to_hex(2199023255552 + n), 12, '0')::macaddr, '', '', 'DOWN', '', 'normal',
		'{}', 'unbound', random() < 0.5
	from generate_series(1, 80) n;
	insert into security_group (id, project, name, description, stateful, tags)
	select md5('group' || n)::uuid, 'p' || floor(random() * 4), 'g', '', true, '{}' from generate_series(1, 20) n;
	insert into security_group_rule (id, group_id, project, description, direction, ethertype, protocol, remote_ip)
	select md5('rule' || n)::uuid, md5('group' || 1 + floor(random() * 20))::uuid, 'p' || floor(random() * 4),
		'n' || floor(random() * 5), 'ingress', 'IPv4', n::text, ''
	from generate_series(1, 60) n`

// listKind is a kind of objects, some of which a project may not see.
type listKind struct {
	list    func(context.Context, db.Listing) ([]uuid.UUID, error)
	visible string // SQL for the IDs of the objects that the project $1 may see
	sorts   []string
	text    string // the field with the values n0 to n4
}

func listKinds(s *store.Store) map[string]listKind {
	return map[string]listKind{
		"networks": {
			list:    s.Network.NetworkIDs,
			visible: `select id from network where project = $1 or shared or external`,
			sorts:   []string{"name", "shared", "external", "project", "status", "id"},
			text:    "name",
		},
		"subnets": {
			list: s.Network.SubnetIDs,
			visible: `select id from subnet where project = $1
				or exists (select from network n where n.id = subnet.network_id and n.shared)`,
			sorts: []string{"name", "network", "gateway", "dhcp", "cidr", "subnetpool"},
			text:  "name",
		},
		"ports": {
			list: s.Network.PortIDs,
			visible: `select id from port where project = $1
				or exists (select from network n where n.id = port.network_id and n.project = $1)`,
			sorts: []string{"name", "network", "mac", "port_security", "project"},
			text:  "name",
		},
		"security group rules": {
			list: s.Network.SecurityRuleIDs,
			visible: `select id from security_group_rule r where project = $1
				or exists (select from security_group g where g.id = r.group_id and g.project = $1)`,
			sorts: []string{"description", "group", "project", "protocol"},
			text:  "description",
		},
	}
}

// TestList_PageOfProjectIsThePageOfTheVisibleObjects compares random pages of projects with pages that the
// test cuts from the list of all objects.
func TestList_PageOfProjectIsThePageOfTheVisibleObjects(t *testing.T) {
	t.Parallel()
	const pages = 200
	url := storetest.URL(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	storetest.ExecScript(t, url, fmt.Sprintf(mixedProjects, random.Float64()))
	s := storetest.Open(t, url)
	rows := storetest.Connect(t, url)
	for name, kind := range listKinds(s) {
		list := func(q db.Listing) []uuid.UUID {
			t.Helper()
			ids, err := kind.list(t.Context(), q)
			if err != nil {
				t.Fatalf("list %s with %+v: %v", name, q, err)
			}
			return ids
		}
		for range pages {
			q := kind.page(random, list(db.Listing{}))
			var visible []uuid.UUID
			if err := rows.QueryRow(t.Context(), `select array(`+kind.visible+`)`, q.Project).Scan(&visible); err != nil {
				t.Fatal(err)
			}
			met := list(db.Listing{Where: q.Where})
			want := cutPage(list(db.Listing{Sort: q.Sort}), q, func(id uuid.UUID) bool {
				return slices.Contains(visible, id) && slices.Contains(met, id)
			})
			if d := cmp.Diff(want, list(q)); d != "" {
				t.Fatalf("%s with %+v (-want +got):\n%s", name, q, d)
			}
		}
	}
}

// page returns a random request for a page, whose marker may be an object that the project does not see.
func (k listKind) page(random *rand.Rand, all []uuid.UUID) db.Listing {
	q := db.Listing{
		Project: fmt.Sprint("p", random.IntN(5)), // p4 has no objects
		Limit:   random.IntN(20),
		Reverse: random.IntN(2) == 0,
	}
	if random.IntN(2) == 0 {
		q.Marker = all[random.IntN(len(all))]
	}
	for _, i := range random.Perm(len(k.sorts))[:random.IntN(3)] {
		q.Sort = append(q.Sort, db.Order{Field: k.sorts[i], Descending: random.IntN(2) == 0})
	}
	if random.IntN(2) == 0 {
		q.Where = []db.Condition{{Field: k.text, In: []string{"n0", fmt.Sprint("n", random.IntN(5))}}}
	}
	return q
}

// cutPage returns the page of a list of all objects that has only those for which `has` is true.
func cutPage(all []uuid.UUID, q db.Listing, has func(uuid.UUID) bool) []uuid.UUID {
	if q.Marker != uuid.Nil {
		at := slices.Index(all, q.Marker)
		if q.Reverse {
			all = all[:at]
		} else {
			all = all[at+1:]
		}
	}
	page := slices.DeleteFunc(slices.Clone(all), func(id uuid.UUID) bool { return !has(id) })
	switch {
	case q.Limit == 0 || len(page) <= q.Limit:
		return page
	case q.Reverse:
		return page[len(page)-q.Limit:]
	default:
		return page[:q.Limit]
	}
}
