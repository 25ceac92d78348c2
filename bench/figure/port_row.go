package figure

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

	"berth/bench/harness"
	"berth/internal/api/neutron"
	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/identity"
	"berth/internal/store"
)

// portAPI is berth's Networking API with a database of its own, without relay and workflows. The Networking
// API of portAPI runs in the process of bench, because the PostgreSQL driver of the baseline also runs in
// this process.
type portAPI struct {
	*harness.API
	rows     *pgxpool.Pool
	networks []networkIDs // one for each client
}

type networkIDs struct{ network, subnet string }

// openPortAPI creates the database with both agents and a network for each client, and starts the API.
func openPortAPI(ctx context.Context, s *harness.Stack) (*portAPI, error) {
	s.PortAPIs++
	database, err := s.CreateDatabase(ctx, fmt.Sprintf("ports_%d", s.PortAPIs))
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(database)
	if err != nil {
		return nil, err
	}
	u.RawQuery = url.Values{
		"pool_max_conns": {strconv.Itoa(s.Clients + 2)},
	}.Encode() // no client waits for a connection
	rows, err := pgxpool.New(ctx, u.String())
	if err != nil {
		return nil, err
	}
	s.OnClose(rows.Close)
	backend, err := store.Open(ctx, u.String(), store.Config{})
	if err != nil {
		return nil, err
	}
	s.OnClose(backend.Close)
	server, err := devstack.Serve(0, neutron.New(backend.Network, identity.Noauth{}))
	if err != nil {
		return nil, err
	}
	s.OnClose(server.Stop)
	p := &portAPI{API: harness.NewAPI(server.URL), rows: rows, networks: make([]networkIDs, s.Clients)}
	for _, sql := range []string{insertAgent("DHCP agent", harness.DHCPHost), insertAgent("Open vSwitch agent", harness.L2Host)} {
		if _, err := rows.Exec(ctx, sql); err != nil {
			return nil, err
		}
	}
	for i := range p.networks {
		n := &p.networks[i]
		if n.network, n.subnet, err = p.CreateDHCPNetwork(ctx, fmt.Sprintf("bench-%d", i)); err != nil {
			return nil, err
		}
	}
	_, err = rows.Exec(ctx,
		`update journal_entry set state = 'completed', finished_at = now(); truncate journal_dep, note`)
	return p, err
}

// insertAgent returns SQL that inserts an agent. The row's last heartbeat is a day in the future, so that
// berth regards the agent as up although the agent sends no heartbeats.
func insertAgent(agentType, host string) string {
	return fmt.Sprintf(`
		insert into agent (id, agent_type, host, binary_name, topic, configurations, heartbeat_at)
		values (gen_random_uuid(), '%s', '%s', 'bench', 'N/A', '{}', now() + interval '1 day')`, agentType, host)
}

// openPortCreates measures POST /ports for a new server: a bound port with an address and with provisioning
// blocks of two agents.
func openPortCreates(ctx context.Context, s *harness.Stack) (*Subject, error) {
	p, err := openPortAPI(ctx, s)
	if err != nil {
		return nil, err
	}
	connections := harness.NewHTTPConnections(p.Base, s.Clients)
	s.OnClose(connections.Close)
	return &Subject{
		setUp: connections.Open,
		op: func(_ context.Context, client int) (int, error) {
			body, err := json.Marshal(map[string]harness.Attributes{"port": serverPort(p.networks[client].network)})
			if err != nil {
				return 0, err
			}
			return 1, connections.Send(client, http.MethodPost, "/networking/v2.0/ports", string(body))
		},
	}, nil
}

// openPortRows measures the baseline of POST /ports: one transaction that inserts the same rows as POST
// /ports. The transaction of the baseline uses only the PostgreSQL driver, with one statement for each row.
func openPortRows(ctx context.Context, s *harness.Stack) (*Subject, error) {
	p, err := openPortAPI(ctx, s)
	if err != nil {
		return nil, err
	}
	template, err := p.portTemplate(ctx)
	if err != nil {
		return nil, err
	}
	var last atomic.Uint32
	last.Store(1 << 16) // host number of the next address; greater than those that the API has allocated
	return &Subject{
		op: func(ctx context.Context, client int) (int, error) {
			return 1, pgx.BeginFunc(ctx, p.rows, func(tx pgx.Tx) error {
				return template.insert(ctx, tx, p.networks[client], last.Add(1))
			})
		},
	}, nil
}

// portTemplate holds those column values of a port's database rows that are the same for all ports.
type portTemplate struct {
	data, summary, attributes, entrySummary, entryAttributes string
	parents                                                  []string
}

// portTemplate creates a port through the API and reads the database rows of the port.
func (p *portAPI) portTemplate(ctx context.Context) (t portTemplate, err error) {
	id, err := p.Create(ctx, "port", serverPort(p.networks[0].network))
	if err != nil {
		return t, err
	}
	err = p.rows.QueryRow(ctx, `
		select e.data::text, e.parents, q.summary, q.attributes::text, j.summary, j.attributes::text
		from journal_entry e, note q, note j
		where e.object_id = $1 and q.workflow_id = 'port/' || $1 and j.workflow_id = 'journal/' || e.seq`, id).
		Scan(&t.data, &t.parents, &t.summary, &t.attributes, &t.entrySummary, &t.entryAttributes)
	return t, err
}

// insert inserts the database rows of the n-th port.
func (t portTemplate) insert(ctx context.Context, tx pgx.Tx, at networkIDs, n uint32) error {
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
	for entity, host := range map[string]string{"DHCP": "", "L2": harness.L2Host} {
		if _, err := tx.Exec(ctx, `insert into block (object_type, object_id, entity, host, since) values ('port', $1, $2, $3, now())`, id, entity, host); err != nil {
			return err
		}
	}
	var seq int64
	if err := tx.QueryRow(ctx, `
		insert into journal_entry (object_type, object_id, operation, data, parents, project, name)
		values ('port', $1, 'create', $2, $3, 'admin', '')
		returning seq`, id.String(), t.data, t.parents).Scan(&seq); err != nil {
		return err
	}
	entry := contract.JournalID(strconv.FormatInt(seq, 10))
	if err := insertNote(ctx, tx, contract.JournalEntry, entry, t.entrySummary, t.entryAttributes); err != nil {
		return err
	}
	return insertNote(ctx, tx, contract.Port, contract.PortID(id.String()), t.summary, t.attributes)
}

// insertNote inserts the note (outbox row) that starts a workflow.
func insertNote(ctx context.Context, tx pgx.Tx, workflow, id, summary, attributes string) error {
	_, err := tx.Exec(
		ctx,
		`insert into note (workflow_id, workflow, fresh, summary, attributes, due_at) values ($1, $2, true, $3, $4, now())`,
		id, workflow, summary, attributes,
	)
	return err
}
