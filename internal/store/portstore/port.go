package portstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
)

var portSelect = `
	select port.id, port.network_id, port.project, port.name, port.description, port.admin_up, port.mac::text, port.device_id,
		port.device_owner, port.status, port.host, port.vnic, port.profile, port.vif, port.port_security, port.ignored_reports,
		port.revision, port.binding_revision, port.vif_details, port.switch,
		coalesce(nullif(port.project, ''), (select n.project from network n where n.id = port.network_id)), (select n.type from network n where n.id = port.network_id), port.created_at, port.updated_at, port.tags, port.address_pairs, port.dhcp_options, port.security_groups,
		(select coalesce(jsonb_agg(jsonb_build_object('subnet', a.subnet_id, 'ip', host(a.address)) order by a.position), '[]')
			from port_address a
			where a.port_id = port.id),
		(select coalesce(jsonb_agg(to_jsonb(b) || ` + blockingAgent + ` order by b.entity), '[]')
			from block b
			where b.object_id = port.id),
		(select coalesce(jsonb_agg(to_jsonb(t) order by t.host), '[]')
			from port_binding t
			where t.port_id = port.id),
		case when port.status = 'ACTIVE' and port.vif not in ('` + network.VIFDistributed + `', '` + network.VIFPhysical + `') then ` + agentWatch + ` end`

// smallPortSelect selects ports without the attributes that can be large.
var smallPortSelect = strings.NewReplacer(
	"port.tags,", "array[]::text[] as tags,",
	"port.dhcp_options,", "'[]'::jsonb as dhcp_options,",
).Replace(portSelect)

// wiringAgentType is the SQL expression for the type of the agent that wires a port.
var wiringAgentType = func() string {
	sql := "case when port.vif_details is not null then '" + network.ODLAgent + "'"
	wirers := network.AgentTypeByVIF()
	for _, vif := range slices.Sorted(maps.Keys(wirers)) {
		sql += " when port.vif = '" + vif + "' then '" + wirers[vif] + "'"
	}
	return sql + " end"
}()

// silentSince is the SQL expression for the time of the latest heartbeat of the agents in the SQL alias `a`.
// silentSince is null while at least one of these agents is alive.
var silentSince = fmt.Sprintf(
	`case when max(a.heartbeat_at) < clock_timestamp() - interval '%d seconds' then max(a.heartbeat_at) end`,
	int(network.AgentDownTime.Seconds()),
)

// blockingAgent is the SQL expression for the agents that can lift the block in the SQL alias b: the agents'
// hosts, whether no agent can lift the block (orphan), whether all these agents are disabled, and since when
// all of them are down.
var blockingAgent = fmt.Sprintf(
	`
				case b.entity
				when 'L2' then (select %[1]s from agent a where a.host = b.host and a.agent_type = %[2]s)
				when 'DHCP' then (select %[1]s from dhcp_binding d join agent a on a.id = d.agent_id where d.network_id = port.network_id and %[3]s)
				else '{}' end`,
	`jsonb_build_object('hosts', coalesce(jsonb_agg(a.host order by a.host), '[]'), 'orphan', count(*) = 0, 'disabled', coalesce(bool_and(not a.admin_up), false),
						'heard', `+silentSince+`)`,
	wiringAgentType,
	networkstore.ReportsPortReady("a.configurations"),
)

// agentWatch is the SQL expression for the network.AgentHealth of a port: the state of the agent that wires
// the port.
var agentWatch = `(select jsonb_build_object('orphan', count(*) = 0, 'heard', ` + silentSince + `) from agent a where a.host = port.host and a.agent_type = ` + wiringAgentType + `)`

const portFrom = `
	from port`

var portColumns = db.Tagged("port", map[string]db.Column{
	"id":            {Expr: "port.id", Cast: "uuid[]"},
	"network":       {Expr: "port.network_id", Cast: "uuid[]"},
	"project":       {Expr: "port.project", Cast: "text[]"},
	"name":          {Expr: "port.name", Cast: "text[]"},
	"description":   {Expr: "port.description", Cast: "text[]"},
	"admin_up":      {Expr: "port.admin_up", Cast: "boolean[]"},
	"mac":           {Expr: "port.mac", Cast: "macaddr[]"},
	"device_id":     {Expr: "port.device_id", Cast: "text[]"},
	"device_owner":  {Expr: "port.device_owner", Cast: "text[]"},
	"status":        {Expr: "port.status", Cast: "text[]"},
	"host":          {Expr: "port.host", Cast: "text[]"},
	"vnic":          {Expr: "port.vnic", Cast: "text[]"},
	"vif":           {Expr: "port.vif", Cast: "text[]"},
	"port_security": {Expr: "port.port_security", Cast: "boolean[]"},
	"revision":      {Expr: "port.revision", Cast: "bigint[]"},
	"subnet": {
		Test:     "exists (select from port_address a where a.port_id = port.id and a.subnet_id = any(%s))",
		Cast:     "uuid[]",
		Unsorted: true,
	},
	"ip": {
		Test:     "exists (select from port_address a where a.port_id = port.id and a.address = any(%s))",
		Cast:     "inet[]",
		Unsorted: true,
	},
	"security_group": {Test: "port.security_groups && %s", Cast: "uuid[]", Unsorted: true},
	"ip_part": {
		Test:     "exists (select from port_address a, unnest(%s) as part where a.port_id = port.id and position(part in host(a.address)) > 0)",
		Cast:     "text[]",
		Unsorted: true,
	},
	networkstore.FieldServingHost: {
		Test:     "port.id in (" + networkstore.PortsOnHost + ")",
		Cast:     "text[]",
		Unsorted: true,
	},
	networkstore.FieldDHCPHost: {
		Test:     "port.network_id in (" + networkstore.NetworksOfDHCPHost + ")",
		Cast:     "text[]",
		Unsorted: true,
	},
})

// visiblePort has the reasons for which a project sees a port: a port of the project, or on a network of the
// project.
var visiblePort = []db.Visibility{
	{Condition: `port.project = $project`},
	{Condition: `project = $project`, Parent: "network", Key: "network_id"},
}

// portFields returns the scan targets for a row of portSelect. After the scan, the caller must call `done`,
// which decodes the JSON columns into the port.
func portFields(p *network.Port) (fields []any, done func() error) {
	var addresses, blocks, bindings, watch []byte
	fields = []any{
		&p.ID,
		&p.Network,
		&p.Project,
		&p.Name,
		&p.Description,
		&p.AdminUp,
		&p.MAC,
		&p.DeviceID,
		&p.DeviceOwner,
		&p.Status,
		&p.Host,
		&p.VNIC,
		&p.Profile,
		&p.VIF,
		&p.PortSecurity,
		&p.IgnoredReports,
		&p.Revision,
		&p.BindingRevision,
		&p.ControllerVIFDetails,
		&p.Switch,
		&p.QuotaProject,
		&p.NetworkType,
		&p.CreatedAt,
		&p.UpdatedAt,
		&p.Tags,
		&p.AddressPairs,
		&p.DHCPOptions,
		&p.SecurityGroups,
		&addresses,
		&blocks,
		&bindings,
		&watch,
	}
	return fields, func() error {
		if err := json.Unmarshal(addresses, &p.Addresses); err != nil {
			return err
		}
		if err := json.Unmarshal(blocks, &p.Blocks); err != nil {
			return err
		}
		if watch != nil {
			if err := json.Unmarshal(watch, &p.AgentHealth); err != nil {
				return err
			}
		}
		return json.Unmarshal(bindings, &p.Bindings)
	}
}

func scanPort(row pgx.CollectableRow) (network.Port, error) {
	var p network.Port
	fields, done := portFields(&p)
	if err := row.Scan(fields...); err != nil {
		return p, err
	}
	return p, done()
}

// queuePortRead queues the query of a port, which reads it into `found`.
func queuePortRead(batch *pgx.Batch, id uuid.UUID, found *network.Port) {
	batch.Queue(portSelect+portFrom+` where id = $1`, id).QueryRow(func(row pgx.Row) error {
		fields, done := portFields(found)
		if err := row.Scan(fields...); err != nil {
			return err
		}
		return done()
	})
}

// Ports lists ports. If the request needs neither the tags nor the DHCP options, Ports does not read them.
func (s *Store) Ports(ctx context.Context, q db.Listing) ([]network.Port, error) {
	l := db.ListQuery{Columns: portColumns, Table: "port"}
	clauses, err := l.Clauses(q, visiblePort...)
	if err != nil {
		return nil, err
	}
	columns := portSelect
	if !q.Needs("tags") && !q.Needs("extra_dhcp_opts") {
		columns = smallPortSelect
	}
	rows, err := s.db.Query(ctx, columns+portFrom+clauses, l.Args...)
	if err != nil {
		return nil, fmt.Errorf("list ports: %w", err)
	}
	ports, err := pgx.CollectRows(rows, scanPort)
	return db.Page(ports, q), err
}

// Port reads one port.
func (s *Store) Port(ctx context.Context, id uuid.UUID) (network.Port, error) {
	return portByID(ctx, s.db, id)
}

func portByID(ctx context.Context, q db.Querier, id uuid.UUID) (network.Port, error) {
	return db.QueryOne(ctx, q, scanPort, portNotFound(id), portSelect+portFrom+` where id = $1`, id)
}

func portNotFound(id uuid.UUID) error {
	return networkstore.NotFound(network.NotFound(network.PortNotFound, "Port", id))
}

// lockedPort is a port whose row the transaction has locked, with the agents that the port depends on and the
// time of the database.
type lockedPort struct {
	network.Port
	network      network.Network // read only by lockPortAndNetwork
	dependencies network.PortContext
	now          time.Time
}

// lockPort locks the port's row and then reads the port.
func lockPort(ctx context.Context, tx *transaction, id uuid.UUID) (lockedPort, error) {
	var h lockedPort
	batch := &pgx.Batch{}
	h.queueLock(batch, id, tx.config, lockPortInTurn)
	err := tx.SendBatch(ctx, batch).Close()
	if db.NoRows(err) {
		return h, portNotFound(id)
	}
	return h, err
}

// SQL that locks the port $1.
const (
	lockPortInTurn = `select from port where id = $1 for update`
	lockPortNow    = lockPortInTurn + ` nowait` // fails if another transaction holds the lock
)

// queueLock adds the lock and the read of a port to the batch; the parameter `lock` is lockPortInTurn or
// lockPortNow. The lock is a separate statement, so that the read sees the changes of the transactions that
// the lock waited for.
func (h *lockedPort) queueLock(batch *pgx.Batch, id uuid.UUID, c Config, lock string) {
	batch.Queue(lock, id)
	batch.Queue(lockedPortSelect+` where id = $1`, id).
		QueryRow(func(row pgx.Row) error { return h.scan(row, c) })
}

var lockedPortSelect = portSelect + `,
			` + dhcpHosts("port.network_id", "(select pa.subnet_id from port_address pa where pa.port_id = port.id)") + `,
			` + agentsOn("port.host") + `,
			clock_timestamp()` + portFrom

func (h *lockedPort) scan(row pgx.Row, c Config) error {
	*h = lockedPort{dependencies: network.PortContext{BlockPolicy: c.Policy}}
	fields, done := portFields(&h.Port)
	if err := row.Scan(append(fields, &h.dependencies.DHCPHosts, &h.dependencies.HostAgents, &h.now)...); err != nil {
		return err
	}
	if c.Network.NoDHCP {
		h.dependencies.DHCPHosts = nil
	}
	return done()
}

// lockExistingPorts locks several ports in the order of the ports' IDs, because transactions that lock ports
// in the same order do not deadlock. lockExistingPorts omits ports that do not exist.
func lockExistingPorts(ctx context.Context, tx *transaction, ids []uuid.UUID) ([]lockedPort, error) {
	var all []lockedPort
	batch := &pgx.Batch{}
	batch.Queue(`select from port where id = any($1) order by id for update`, ids)
	batch.Queue(lockedPortSelect+` where id = any($1) order by id`, ids).
		Query(func(rows pgx.Rows) (err error) {
			all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (lockedPort, error) {
				var h lockedPort
				err := h.scan(row, tx.config)
				return h, err
			})
			return err
		})
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("lock ports: %w", err)
	}
	return all, nil
}

// dhcpHosts is the SQL expression for the hosts of the DHCP agents that serve one of the subnets of the
// network and report ready ports. DHCP agents that are down are included, because either such an agent
// becomes alive again, or its networks move to other DHCP agents.
func dhcpHosts(networkID, subnets string) string {
	return fmt.Sprintf(`array(select a.host
				from dhcp_binding d
				join agent a on a.id = d.agent_id
				where d.network_id = %s and %s
					and exists (select from subnet s where s.id in %s and s.dhcp)
				order by a.host)`, networkID, networkstore.ReportsPortReady("a.configurations"), subnets)
}

// agentsOn returns the SQL expression for the agents on a host, with the data that the binding of a port
// needs.
func agentsOn(host string) string {
	return fmt.Sprintf(`(select coalesce(jsonb_agg(jsonb_build_object('type', a.agent_type,
					'alive', a.heartbeat_at > clock_timestamp() - interval '%[1]d seconds',
					'smart_nic', a.configurations -> 'baremetal_smartnic' is not distinct from 'true',
					'configurations', case a.agent_type when '%[3]s' then a.configurations when '%[5]s' then `+switchOf+` end)), '[]')
				from agent a
				where a.host = %[2]s and a.agent_type in %[4]s)`, int(network.AgentDownTime.Seconds()), host, network.ODLAgent, networkstore.L2Agents, network.OVSAgent)
}

// switchOf is the SQL expression for the switch configuration of the Open vSwitch agent in the alias a.
const switchOf = `jsonb_build_object('datapath_type', a.configurations -> 'datapath_type', 'integration_bridge', a.configurations -> 'integration_bridge',
						'ovs_hybrid_plug', a.configurations -> 'ovs_hybrid_plug', 'vhostuser_socket_dir', a.configurations -> 'vhostuser_socket_dir',
						'ovs_capabilities', a.configurations -> 'ovs_capabilities')`

// readHostAgents reads the agents on a host.
func readHostAgents(ctx context.Context, tx *transaction, host string) ([]network.HostAgent, error) {
	if host == "" {
		return nil, nil
	}
	var agents []network.HostAgent
	err := tx.QueryRow(ctx, `select `+agentsOn("$1"), host).Scan(&agents)
	return agents, err
}

// WorkflowPortStatus converts a port's status to the form in which the port's workflow gets it.
func WorkflowPortStatus(key string, s network.StatusView) contract.PortStatus {
	out := contract.PortStatus{
		Deleted:           s.Deleted,
		Status:            s.Status,
		IgnoredReports:    s.IgnoredReports,
		PendingNovaEvents: len(s.Events),
		LookAgainAt:       s.NextDeadline,
	}
	if s.Deleted {
		out.Status = "DELETED"
	} else {
		out.Attributes = &contract.Attributes{Project: s.Project, Host: s.Host, Resource: "port"}
	}
	name := s.Name
	if name == "" {
		name = key
	}
	out.Sentence = "Port " + name + " is " + s.Sentence() + "."
	for _, w := range s.Waiting {
		out.Waiting = append(out.Waiting,
			contract.Waiting{For: w.Entity, Since: &w.Since, Deadline: w.Deadline})
	}
	return out
}

// portNudge returns the nudge for the port's workflow. If the parameter `fresh` is true, the port is new, so
// its workflow does not run yet.
func portNudge(p network.Port, fresh bool) contract.Nudge {
	name := p.Name
	if name == "" {
		name = p.ID.String()
	}
	summary := "port " + name
	if p.Host != "" {
		summary += " on " + p.Host
	}
	return contract.Nudge{
		Workflow:   contract.Port,
		ID:         contract.PortID(p.ID.String()),
		NotRunning: fresh,
		Summary:    summary,
		Attributes: contract.Attributes{
			Status:     p.Status,
			Project:    p.Project,
			Host:       p.Host,
			Resource:   "port",
			WaitingFor: p.StatusView().Remaining(),
		},
	}
}

// DeletePort deletes a port together with the port's addresses and blocks. The pending Nova events of a
// deleted port stay in the database until they are delivered.
func (s *Store) DeletePort(ctx context.Context, id uuid.UUID, expect *int64) error {
	return s.inTx(ctx, func(tx *transaction) error {
		p, err := lockPort(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := networkstore.CheckRevision(p.Revision, expect); err != nil {
			return err
		}
		tx.Audit(p.Port, nil)
		return deletePort(ctx, tx, p)
	})
}

func deletePort(ctx context.Context, tx *transaction, p lockedPort) error {
	_, err := writePort(ctx, tx, p.Port, network.Port{}, network.PortCause{Event: network.EventDeleted})
	return err
}
