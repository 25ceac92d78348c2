package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/internal/odl/odltest"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// manyObjects inserts the objects number %[1]d to %[2]d of each kind that metrics count. No two of them have
// an ID, a name, a host, a project or a type in common.
const manyObjects = `
	insert into network (id, project, name, description, admin_up, shared, external, mtu, port_security, type, segment)
	select gen_random_uuid(), 'project-' || n, 'network-' || n, '', true, false, false, 1450, true, 'vxlan', 100000 + n
	from generate_series(%[1]d, %[2]d) n;
	insert into port (id, network_id, project, name, description, admin_up, mac, device_id, device_owner, status, host, vnic, profile, vif, port_security)
	select gen_random_uuid(), id, project, 'port of ' || name, '', true, '02:00:00:00:00:01', 'server-' || name, 'compute:' || name, 'DOWN', 'host-' || name, 'normal', '{}', 'ovs', true
	from network where segment between 100000 + %[1]d and 100000 + %[2]d;
	insert into block (object_id, entity, host, since, deadline)
	select id, 'entity of ' || name, host, now() - interval '1 hour', now() - interval '1 minute'
	from port where name like 'port of %%' and not exists (select from block where object_id = port.id);
	insert into agent (id, agent_type, host, binary_name, topic, configurations, heartbeat_at)
	select gen_random_uuid(), 'type-' || n, 'host-' || n, 'binary-' || n, 'topic-' || n, '{}', now() - interval '1 hour'
	from generate_series(%[1]d, %[2]d) n;
	insert into agent_notification (network_id, kind, event, object_id, data)
	select id, 'port', 'delete', id, '{}' from network where segment between 100000 + %[1]d and 100000 + %[2]d;
	insert into nova_event (port_id, server, name, status, tag)
	select id, device_id, 'network-vif-plugged', 'completed', name from port where name like 'port of %%';
	insert into journal_entry (object_type, object_id, operation, data, parents, project, name)
	select 'type-' || n, 'object-' || n, 'create', '{}', '{}', 'project-' || n, 'name-' || n
	from generate_series(%[1]d, %[2]d) n`

// seriesOf returns the names of berth's series in a scrape, with their labels.
func seriesOf(t *testing.T, scraped string) (all []string) {
	t.Helper()
	for line := range strings.Lines(scraped) {
		if strings.HasPrefix(line, "berth_") {
			all = append(all, line[:strings.LastIndex(line, " ")])
		}
	}
	slices.Sort(all)
	return all
}

// TestMetrics_SeriesDoNotGrowWithObjects compares the series of a process with one object of each kind and
// with 10,000, each with other values in every request and row.
func TestMetrics_SeriesDoNotGrowWithObjects(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api", "BERTH_ODL_URL="+servertest.Serve(t, odltest.New())+odltest.BasePath)
	fill := func(first, last int) {
		storetest.ExecScript(t, a.DatabaseURL(), fmt.Sprintf(manyObjects, first, last))
	}
	requests := func(n int) {
		for range n {
			id := uuid.NewString()
			for path, want := range map[string]int{
				"/networking/v2.0/ports/":           http.StatusNotFound,
				"/placement/resource_providers/":    http.StatusNotFound,
				"/reservation/v1/leases/":           http.StatusNotFound,
				"/networking/v2.0/networks?name=":   http.StatusOK,
				"/journal/v1/entries?object=":       http.StatusOK,
				"/placement/usages/" + id + "/none": http.StatusNotFound,
			} {
				if code := send(t, a, http.MethodGet, path+id, ""); code != want {
					t.Errorf("GET %s: got the status %d, want %d", path, code, want)
				}
			}
		}
	}
	fill(1, 1)
	requests(1)
	before := seriesOf(t, scrape(t, a))

	fill(2, 10_000)
	requests(50)

	// the gauges that count rows are read at most every two seconds
	servertest.Await(t, "the gauges count the new objects", func() bool {
		return strings.Contains(scrape(t, a), "\nberth_port_blocks{age=\"over_10m\",entity=\"other\"} 10000\n")
	})
	if after := seriesOf(t, scrape(t, a)); !slices.Equal(before, after) {
		added := slices.DeleteFunc(after, func(s string) bool { return slices.Contains(before, s) })
		t.Errorf("series with 10,000 objects: got %d more than the %d with one object, want none: %v",
			len(added), len(before), added[:min(len(added), 10)])
	}
}
