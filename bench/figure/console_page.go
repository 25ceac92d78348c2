package figure

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"berth/bench/harness"
)

// pagedPorts is the number of ports in the database of the measurement of the console.
const pagedPorts = 100_000

// consolePage is a page of the console, with the token of the reader.
type consolePage struct{ name, token, path string }

// openConsolePages measures pages of the console in a database with many ports: the first page of an
// administrator, the pages of a project that has three fifths of the ports, and the page of a port that
// waits.
func openConsolePages(ctx context.Context, s *harness.Stack) (*Subject, error) {
	a, err := s.LoadDataset(ctx, portsOfProjects(s.ScaleRows(pagedPorts)))
	if err != nil {
		return nil, err
	}
	const member, port = "ann:big", "/console/ports/00000000-0000-4000-8000-000000000000"
	pages := []consolePage{
		{"Waiting of an administrator", "admin", "/console/"},
		{"Waiting of a project", member, "/console/"},
		{"Ports of a project", member, "/console/ports"},
		{"a port, for an administrator", "admin", port},
		{"a port, for its project", member, port},
	}
	var next atomic.Int64
	return &Subject{
		op: func(ctx context.Context, _ int) (int, error) {
			return 1, pages[next.Add(1)%int64(len(pages))].read(ctx, a.Base)
		},
		Details: func(ctx context.Context) (all []harness.Detail, err error) {
			for _, p := range pages {
				median, err := p.medianTime(ctx, a.Base)
				if err != nil {
					return nil, err
				}
				all = append(all, harness.Detail{Name: "median time of the page " + p.name + " in ms", Value: median})
			}
			return all, nil
		},
	}, nil
}

// read reads the page.
func (p consolePage) read(ctx context.Context, base string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+p.path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("X-Auth-Token", p.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", p.path, answer.Status, body)
	}
	return err
}

// medianTime reads the page repeatedly, and returns the median of the times in milliseconds.
func (p consolePage) medianTime(ctx context.Context, base string) (float64, error) {
	times := make([]time.Duration, 101)
	for i := range times {
		begin := time.Now()
		if err := p.read(ctx, base); err != nil {
			return 0, err
		}
		times[i] = time.Since(begin)
	}
	slices.Sort(times)
	return float64(times[len(times)/2]) / float64(time.Millisecond), nil
}

// portsOfProjects returns a dataset of ports on 500 hosts with their addresses and journal entries. The
// project `big` has three fifths of the ports, and 200 other projects have the rest. One port in a hundred
// of the project `big` waits for its agent.
func portsOfProjects(ports int) harness.Dataset {
	big := ports * 3 / 5
	return harness.Dataset{Name: "console_pages", SQL: []string{
		`set session_replication_role = replica`, // no triggers and no foreign key checks
		`insert into network (id, project, name, description, admin_up, shared, external, port_security, mtu, type)
			values ('00000000-0000-4000-8000-000000000001', 'big', 'big', '', true, false, false, true, 1500, 'local')`,
		`insert into agent (id, agent_type, host, binary_name, topic, configurations, heartbeat_at)
			select gen_random_uuid(), 'Open vSwitch agent', 'host-' || n, 'bench', 'N/A', '{}', now() + interval '1 day'
			from generate_series(0, 499) as n`,
		fmt.Sprintf(`
			insert into port (id, network_id, project, name, description, admin_up, mac, device_id, device_owner, status, host, vnic, profile, vif, port_security)
			select case n when 0 then '00000000-0000-4000-8000-000000000000' else gen_random_uuid() end,
				'00000000-0000-4000-8000-000000000001', case when n < %d then 'big' else 'p' || n %% 200 end, 'port-' || n, '', true,
				('02' || lpad(to_hex(n), 10, '0'))::macaddr, gen_random_uuid(), 'compute:nova',
				case when n < %[1]d and n %% 100 = 0 then 'DOWN' else 'ACTIVE' end, 'host-' || n %% 500, 'normal', '{}', 'ovs', true
			from generate_series(0, %d - 1) as n`, big, ports),
		`insert into port_address (subnet_id, address, port_id, position)
			select '00000000-0000-4000-8000-000000000002', '10.0.0.0'::inet + row_number() over (), id, 0 from port`,
		`insert into block (object_id, entity, host, since) select id, 'L2', host, now() from port where status = 'DOWN'`,
		`insert into journal_entry (object_type, object_id, operation, data, parents, project, name, state, finished_at)
			select 'port', id, 'create', '{}', '{}', project, name, 'completed', now() from port`,
		`insert into consumer (uuid, project, user_id, type) select device_id, project, 'ann', 'INSTANCE' from port`,
		`insert into generation_change (actor, cause, consumer, consumer_to) select 'nova', 'allocations', device_id, 1 from port`,
		`set session_replication_role = origin`,
	}}
}
