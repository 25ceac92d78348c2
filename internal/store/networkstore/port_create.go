package networkstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// CreatePorts makes ports, all or none.
func (s *Store) CreatePorts(ctx context.Context, drafts []network.PortChange) ([]network.Port, error) {
	return createAll(ctx, s, drafts, createPort)
}

func createPort(ctx context.Context, tx *transaction, c network.PortChange) (network.Port, error) {
	p := network.NewPort(uuid.New(), c)
	at, err := siteOf(ctx, tx, p)
	if err != nil {
		return p, err
	}
	if c.PortSecurity == nil {
		p.PortSecurity = at.network.PortSecurity
	}
	if p.Trusted() {
		p.PortSecurity, c.SecurityGroups = false, nil
	}
	if p, err = secure(ctx, tx, p, c); err != nil {
		return p, err
	}
	if p, err = welcome(ctx, tx, p, at.tenancy, p.UsesDefaultGroup(c)); err != nil {
		return p, err
	}
	p = p.BindWith(at.agents)
	p, now, err := insertPort(ctx, tx, p, c)
	if err != nil {
		return p, err
	}
	wants := p.DefaultAddressRequests(at.subnets)
	if c.FixedIPs != nil {
		if wants, err = wishes(ctx, tx, p, at.subnets, *c.FixedIPs); err != nil {
			return p, err
		}
	}
	if p.Addresses, err = allocate(ctx, tx, p, 0, wants); err != nil {
		return p, err
	}
	if !at.hosted && slices.ContainsFunc(at.subnets, func(s network.Subnet) bool { return s.DHCP }) {
		if err := schedule(ctx, tx, p.Network, uuid.Nil); err != nil {
			return p, err
		}
	}
	return begin(ctx, tx, p, now)
}

// site is what a new port finds on its network and its host, and in its project.
type site struct {
	tenancy
	network network.Network
	subnets []network.Subnet
	agents  []network.HostAgent // on its host
	hosted  bool                // the network, by a DHCP agent
}

// siteOf shares the lock of the port's network, and reads what is there.
func siteOf(ctx context.Context, tx *transaction, p network.Port) (at site, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`select from network where id = $1 for `+sharing, p.Network)
	batch.Queue(networkSelect+` where id = $1`, p.Network).Query(func(rows pgx.Rows) (err error) {
		at.network, err = pgx.CollectExactlyOneRow(rows, scanNetwork)
		return err
	})
	batch.Queue(subnetSelect+subnetsIn, p.Network).Query(func(rows pgx.Rows) (err error) {
		at.subnets, err = pgx.CollectRows(rows, scanSubnet)
		return err
	})
	batch.Queue(`select exists (select from dhcp_binding where network_id = $1)`, p.Network).
		QueryRow(func(row pgx.Row) error { return row.Scan(&at.hosted) })
	at.tenancy.queue(batch, p.Project)
	if p.Host != "" {
		batch.Queue(`select `+agentsOn("$1", "$2"), p.Host, p.Network).QueryRow(func(row pgx.Row) error { return row.Scan(&at.agents) })
	}
	if err = tx.SendBatch(ctx, batch).Close(); db.NoRows(err) {
		err = missingNetwork(p.Network)
	}
	return at, err
}

// macTries is how often chance gets to find a MAC that the network does not have yet.
const macTries = 16

// insertPort writes the row of a new port, with a MAC by chance if it has none, and tells the time.
func insertPort(ctx context.Context, tx *transaction, p network.Port, c network.PortChange) (_ network.Port, now time.Time, err error) {
	given := p.MAC != ""
	for range macTries {
		if !given {
			p.MAC = network.NewMAC()
		}
		p, err := p.WithExtensions(c)
		if err != nil {
			return p, now, err
		}
		err = tx.QueryRow(ctx, `
			insert into port (id, network_id, project, name, description, admin_up, mac, device_id, device_owner, status, host, vnic,
				profile, vif, port_security, address_pairs, dhcp_options, tags, vif_details, security_groups, switch)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
			on conflict on constraint port_mac do nothing
			returning revision, clock_timestamp()`,
			p.ID, p.Network, p.Project, p.Name, p.Description, p.AdminUp, p.MAC, p.DeviceID, p.DeviceOwner, p.Status, p.Host, p.VNIC,
			p.Profile, p.VIF, p.PortSecurity, encoded(p.AddressPairs), encoded(p.DHCPOptions), p.Tags, p.ControllerVIFDetails, p.SecurityGroups, p.Switch).Scan(&p.Revision, &now)
		switch {
		case err == nil:
			return p, now, nil
		case !db.NoRows(err):
			return p, now, fmt.Errorf("create port: %w", err)
		case given:
			return p, now, macInUse(p)
		}
	}
	return p, now, network.Faultf(network.MACInUse, "Unable to generate a MAC address for network %s.", p.Network)
}

func macInUse(p network.Port) error {
	return network.Faultf(network.MACInUse, "Unable to complete operation for network %s. The mac address %s is in use.", p.Network, p.MAC)
}

// begin blocks a new port, decides its status and tells everybody of it.
func begin(ctx context.Context, tx *transaction, before network.Port, now time.Time) (network.Port, error) {
	around, err := surroundings(ctx, tx, before)
	if err != nil {
		return before, err
	}
	p := before.UpdateBlocks(around, network.BlockTrigger{BindingChanged: true, AddressesChanged: true, Revision: before.Revision}, now).UpdateStatus(now)
	batch := &pgx.Batch{}
	queueBlocks(batch, before, p)
	if p.Status != before.Status {
		batch.Queue(`update port set status = $2 where id = $1 and status = $3`, p.ID, p.Status, before.Status)
		queueTransition(batch, before, p, "")
	}
	recorded := p.NovaEvents(before, "")
	var made network.Port
	batch.Queue(portSelect+portFrom+` where id = $1`, p.ID).QueryRow(func(row pgx.Row) error { // as any look would find it
		fields, done := portFields(&made)
		if err := row.Scan(fields...); err != nil {
			return err
		}
		return done()
	})
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return p, fmt.Errorf("block port: %w", err)
	}
	if err := record(ctx, tx, mirrorPort(made, journal.Create)); err != nil {
		return made, err
	}
	n, standing := portNudge(made, true), made.StatusView()
	standing.Events = recorded
	n.PortStatus = new(PortStanding(p.ID.String(), standing))
	return made, outbox.Enqueue(ctx, tx, n)
}
