package portstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
)

// CreatePorts creates ports in one transaction. No port gets by chance the address or the MAC that the draft
// of another port names. CreatePorts takes the turns of the networks of all ports before it locks anything.
func (s *Store) CreatePorts(ctx context.Context, drafts []network.PortChange) ([]network.Port, error) {
	return networkstore.CreateAll(
		ctx,
		s.inPreparedTx,
		drafts,
		func(ctx context.Context, tx *transaction, c network.PortChange) (network.Port, error) {
			if tx.drafts == nil && len(drafts) > 1 {
				if err := takeTurns(ctx, tx, drafts); err != nil {
					return network.Port{}, err
				}
			}
			tx.drafts = drafts
			return createPort(ctx, tx, c)
		},
	)
}

// takeTurns takes the turns of the networks of several drafts, which have the same project unless an
// administrator creates them.
func takeTurns(ctx context.Context, tx *transaction, drafts []network.PortChange) error {
	networks := make([]uuid.UUID, len(drafts))
	for i, c := range drafts {
		networks[i] = network.NewPort(uuid.Nil, c).Network
	}
	return tx.TakePortTurns(ctx, network.NewPort(uuid.Nil, drafts[0]).Project, networks)
}

func createPort(ctx context.Context, tx *transaction, c network.PortChange) (network.Port, error) {
	if tx.drafts == nil {
		tx.drafts = []network.PortChange{c}
	}
	p := network.NewPort(uuid.New(), c)
	if err := p.CheckDevice(network.Port{}, c); err != nil {
		return p, err
	}
	pc, err := readPortContext(ctx, tx, p)
	if err != nil {
		return p, err
	}
	if c.NeedsOpenNetwork && !pc.network.OpenToAllProjects() {
		return p, networkstore.NetworkNotFound(p.Network) // the network has become private meanwhile
	}
	if p, err = secureNewPort(ctx, tx, p, c, pc); err != nil {
		return p, err
	}
	p.NetworkType = pc.network.Type
	p = p.BindWith(pc.agents)
	p, now, err := insertPort(ctx, tx, p, c)
	if err != nil {
		return p, err
	}
	if p.Addresses, err = allocateForNewPort(ctx, tx, p, c, pc); err != nil {
		return p, err
	}
	if !pc.hasDHCPAgent && slices.ContainsFunc(pc.subnets, func(s network.Subnet) bool { return s.DHCP }) {
		if err := networkstore.ChooseDHCPAgent(ctx, tx.Transaction, p.Network, uuid.Nil); err != nil {
			return p, err
		}
	}
	return provisionPort(ctx, tx, p, now)
}

// allocateForNewPort allocates the addresses of a new port.
func allocateForNewPort(
	ctx context.Context,
	tx *transaction,
	p network.Port,
	c network.PortChange,
	pc portContext,
) ([]network.Address, error) {
	candidates, err := p.CandidateSubnets(pc.subnets)
	if err != nil {
		return nil, err
	}
	requests := p.DefaultAddressRequests(candidates)
	if c.FixedIPs != nil {
		if requests, err = requestedAddresses(ctx, tx, p, candidates, *c.FixedIPs); err != nil {
			return nil, err
		}
	}
	if err := c.CheckAddressCount(pc.network, network.Port{}, requests); err != nil {
		return nil, err
	}
	return allocateAddresses(ctx, tx, p, 0, requests)
}

// secureNewPort returns a new port with its port security and its security groups. secureNewPort returns an
// error if the project has reached its quota of ports, unless the transaction may exceed it.
func secureNewPort(
	ctx context.Context,
	tx *transaction,
	p network.Port,
	c network.PortChange,
	pc portContext,
) (network.Port, error) {
	if c.PortSecurity == nil {
		p.PortSecurity = pc.network.PortSecurity
	}
	if p.Trusted() {
		p.PortSecurity, c.SecurityGroups = false, nil
	}
	p, err := applySecurityGroups(ctx, tx, p, c)
	if err != nil {
		return p, err
	}
	if !tx.beyondQuota {
		err = networkstore.CheckQuotaLimit(ctx, tx.Transaction, network.QuotaPorts, p.Project, 1, pc.PortLimit)
		if err != nil {
			return p, err
		}
	}
	if !p.UsesDefaultGroup(c) {
		return p, nil
	}
	return addDefaultGroup(ctx, tx, p, pc.DefaultGroup)
}

// portContext is the state of network, host and project that the creation of a port depends on.
type portContext struct {
	networkstore.ProjectContext
	network      network.Network
	subnets      []network.Subnet
	agents       []network.HostAgent // on the port's host
	hasDHCPAgent bool                // whether a DHCP agent hosts the network
}

// readPortContext takes a share lock on the port's network and reads the context.
func readPortContext(ctx context.Context, tx *transaction, p network.Port) (pc portContext, err error) {
	batch := &pgx.Batch{}
	tx.QueuePortNetworkLock(batch, p.Network, p.Project, &pc.network)
	networkstore.QueueSubnetsRead(batch, p.Network, &pc.subnets)
	batch.Queue(`select exists (select from dhcp_binding where network_id = $1)`, p.Network).
		QueryRow(func(row pgx.Row) error { return row.Scan(&pc.hasDHCPAgent) })
	pc.ProjectContext.Queue(batch, p.Project)
	if p.Host != "" {
		batch.Queue(`select `+agentsOn("$1"), p.Host).
			QueryRow(func(row pgx.Row) error { return row.Scan(&pc.agents) })
	}
	if err = tx.SendBatch(ctx, batch).Close(); db.NoRows(err) {
		err = networkstore.NetworkNotFound(p.Network)
	}
	return pc, err
}

// macAttempts is the number of random MACs that are tried for a new port.
const macAttempts = 16

// insertPort inserts the row of a new port and returns the time of the database. If the request names no MAC,
// insertPort gives the port a random MAC.
func insertPort(
	ctx context.Context,
	tx *transaction,
	p network.Port,
	c network.PortChange,
) (_ network.Port, now time.Time, err error) {
	given := p.MAC != ""
	for range macAttempts {
		if !given {
			p.MAC = network.UnnamedMAC(tx.drafts, network.NewMAC)
		}
		p, err := p.WithExtensions(c)
		if err != nil {
			return p, now, err
		}
		err = tx.QueryRow(ctx, `
			insert into port (id, network_id, project, name, description, admin_up, mac, device_id, device_owner, status, host, vnic,
				profile, vif, port_security, address_pairs, dhcp_options, tags, vif_details, security_groups, switch)
			values (@id, @network_id, @project, @name, @description, @admin_up, @mac, @device_id, @device_owner, @status, @host, @vnic, @profile, @vif, @port_security, @address_pairs, @dhcp_options, @tags, @vif_details, @security_groups, @switch)
			on conflict on constraint port_mac do nothing
			returning revision, clock_timestamp()`, pgx.StrictNamedArgs{
			"id":              p.ID,
			"network_id":      p.Network,
			"project":         p.Project,
			"name":            p.Name,
			"description":     p.Description,
			"admin_up":        p.AdminUp,
			"mac":             p.MAC,
			"device_id":       p.DeviceID,
			"device_owner":    p.DeviceOwner,
			"status":          p.Status,
			"host":            p.Host,
			"vnic":            p.VNIC,
			"profile":         p.Profile,
			"vif":             p.VIF,
			"port_security":   p.PortSecurity,
			"address_pairs":   db.EncodeJSON(p.AddressPairs),
			"dhcp_options":    db.EncodeJSON(p.DHCPOptions),
			"tags":            p.Tags,
			"vif_details":     p.ControllerVIFDetails,
			"security_groups": p.SecurityGroups,
			"switch":          p.Switch,
		}).Scan(&p.Revision, &now)
		switch {
		case err == nil:
			return p, now, nil
		case !db.NoRows(err):
			return p, now, fmt.Errorf("create port: %w", err)
		case given:
			return p, now, p.MACInUse()
		}
	}
	return p, now, network.Faultf(network.MACInUse, "Unable to generate a MAC address for network %s.",
		p.Network)
}

// provisionPort adds the provisioning blocks of a new port, updates the port's status, and writes everything
// that follows from the creation.
func provisionPort(
	ctx context.Context,
	tx *transaction,
	before network.Port,
	now time.Time,
) (network.Port, error) {
	dependencies, err := readDependencies(ctx, tx, before)
	if err != nil {
		return before, err
	}
	trigger := network.BlockTrigger{BindingChanged: true, AddressesChanged: true, Revision: before.Revision}
	p := before.UpdateBlocks(dependencies, trigger, now).UpdateStatus(now)
	return writePort(ctx, tx, before, p, network.PortCause{Event: network.EventCreated})
}
