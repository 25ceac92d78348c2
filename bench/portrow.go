package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"berth/internal/api/neutron"
	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/identity"
	"berth/internal/store"
)

// quay is where ports are made and nobody takes care of them: a database of its own, with the API in this process,
// because the driver that it is compared with is in it too.
type quay struct {
	*api
	rows     *pgxpool.Pool
	networks []berthing // one for each client
	close    func()
}

type berthing struct{ network, subnet string }

// openQuay makes such a place with a network for each client.
func (s *stack) openQuay(ctx context.Context) (*quay, error) {
	s.quays++
	database, err := s.database(ctx, fmt.Sprintf("quay_%d", s.quays))
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(database)
	if err != nil {
		return nil, err
	}
	u.RawQuery = url.Values{"pool_max_conns": {strconv.Itoa(s.clients + 2)}}.Encode() // nobody waits for a connection
	rows, err := pgxpool.New(ctx, u.String())
	if err != nil {
		return nil, err
	}
	held, err := store.Open(ctx, u.String())
	if err != nil {
		return nil, err
	}
	server, err := devstack.Serve(0, neutron.New(held, identity.Noauth{}))
	if err != nil {
		return nil, err
	}
	q := &quay{api: newAPI(server.URL), rows: rows, networks: make([]berthing, s.clients), close: func() {
		server.Stop()
		held.Close()
		rows.Close()
	}}
	for _, sql := range []string{agentRow("DHCP agent", dhcpHost), agentRow("Open vSwitch agent", l2Host)} {
		if _, err := rows.Exec(ctx, sql); err != nil {
			return nil, err
		}
	}
	for i := range q.networks {
		n := &q.networks[i]
		if n.network, n.subnet, err = q.wired(ctx, fmt.Sprintf("bench-%d", i)); err != nil {
			return nil, err
		}
	}
	_, err = rows.Exec(ctx, `update journal_entry set state = 'completed', finished_at = now(); truncate journal_dep, note`)
	return q, err
}

// agentRow is an agent that does not fall silent while things are measured.
func agentRow(kind, host string) string {
	return fmt.Sprintf(`
		insert into agent (id, agent_type, host, binary_name, topic, configurations, heartbeat_at)
		values (gen_random_uuid(), '%s', '%s', 'bench', 'N/A', '{}', now() + interval '1 day')`, kind, host)
}

// openPortCreates measures what a compute service asks for a new server: a port on a host, with an address, that two
// agents have to work on.
func openPortCreates(ctx context.Context, s *stack) (*subject, error) {
	q, err := s.openQuay(ctx)
	if err != nil {
		return nil, err
	}
	wires := newWires(q.base, s.clients)
	return &subject{
		before: wires.open,
		op: func(_ context.Context, client int) (int, error) {
			body, err := json.Marshal(map[string]attributes{"port": serverPort(q.networks[client].network)})
			if err != nil {
				return 0, err
			}
			return 1, wires.send(client, http.MethodPost, "/networking/v2.0/ports", string(body))
		},
		close: func(context.Context) ([]detail, error) {
			wires.close()
			q.close()
			return nil, nil
		},
	}, nil
}

// openPortRows measures the peer of a port's creation: the rows that it leaves, in one transaction with the driver
// alone, a statement for each.
func openPortRows(ctx context.Context, s *stack) (*subject, error) {
	q, err := s.openQuay(ctx)
	if err != nil {
		return nil, err
	}
	row, err := q.model(ctx)
	if err != nil {
		return nil, err
	}
	var last atomic.Uint32
	last.Store(1 << 16) // beyond what the API has given out
	return &subject{
		op: func(ctx context.Context, client int) (int, error) {
			return 1, pgx.BeginFunc(ctx, q.rows, func(tx pgx.Tx) error {
				return row.insert(ctx, tx, q.networks[client], last.Add(1))
			})
		},
		close: func(context.Context) ([]detail, error) {
			q.close()
			return nil, nil
		},
	}, nil
}

// cast is what the rows of a new port hold besides its identity.
type cast struct {
	data, summary, attributes, entrySummary, entryAttributes string
	parents                                                  []string
}

// model makes a port by the API and takes over what it left.
func (q *quay) model(ctx context.Context) (c cast, err error) {
	id, err := q.create(ctx, "port", serverPort(q.networks[0].network))
	if err != nil {
		return c, err
	}
	err = q.rows.QueryRow(ctx, `
		select e.data::text, e.parents, p.summary, p.attributes::text, j.summary, j.attributes::text
		from journal_entry e, note p, note j
		where e.object_id = $1 and p.workflow_id = 'port/' || $1 and j.workflow_id = 'journal/' || e.seq`, id).
		Scan(&c.data, &c.parents, &c.summary, &c.attributes, &c.entrySummary, &c.entryAttributes)
	return c, err
}

// insert writes the rows of the nth port, each by a statement.
func (c cast) insert(ctx context.Context, tx pgx.Tx, at berthing, n uint32) error {
	id := uuid.New()
	ip, mac := binary.BigEndian.AppendUint32(nil, 10<<24+n), binary.BigEndian.AppendUint32([]byte{2, 0}, n)
	if _, err := tx.Exec(ctx, `
		insert into port (id, network_id, project, name, description, admin_up, mac, device_id, device_owner, status, host, vnic, profile, vif, port_security)
		values ($1, $2, 'admin', '', '', true, $3::text::macaddr, $4, 'compute:nova', 'DOWN', 'bench-cmp', 'normal', '{}', 'ovs', true)`,
		id, at.network, net.HardwareAddr(mac).String(), uuid.NewString()); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `insert into port_address (subnet_id, address, port_id, position) values ($1, $2::text::inet, $3, 0)`,
		at.subnet, net.IP(ip).String(), id); err != nil {
		return err
	}
	for entity, host := range map[string]string{"DHCP": "", "L2": l2Host} {
		if _, err := tx.Exec(ctx, `insert into block (object_type, object_id, entity, host, since) values ('port', $1, $2, $3, now())`, id, entity, host); err != nil {
			return err
		}
	}
	var seq int64
	if err := tx.QueryRow(ctx, `
		insert into journal_entry (object_type, object_id, operation, data, parents, project, name)
		values ('port', $1, 'create', $2, $3, 'admin', '')
		returning seq`, id.String(), c.data, c.parents).Scan(&seq); err != nil {
		return err
	}
	if err := note(ctx, tx, contract.JournalEntry, contract.JournalID(strconv.FormatInt(seq, 10)), c.entrySummary, c.entryAttributes); err != nil {
		return err
	}
	return note(ctx, tx, contract.Port, contract.PortID(id.String()), c.summary, c.attributes)
}

func note(ctx context.Context, tx pgx.Tx, workflow, id, summary, attributes string) error {
	_, err := tx.Exec(ctx, `insert into note (workflow_id, workflow, fresh, summary, attributes, due_at) values ($1, $2, true, $3, $4, now())`,
		id, workflow, summary, attributes)
	return err
}
