package leasestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/inventorystore"
)

// RegisterHost makes a hypervisor reservable. The hostname of the hypervisor is the name or UUID of the
// hypervisor's root provider in Placement. Neither the root provider nor a provider below it may have
// allocations. RegisterHost creates a nested provider below the root provider. While a lease of the host is
// active, its reservation has an allocation or an inventory at this nested provider.
func (s *Store) RegisterHost(
	ctx context.Context,
	nova lease.Hypervisor,
	capabilities map[string]string,
) (h lease.Host, err error) {
	if err := lease.CheckCapabilities(capabilities); err != nil {
		return h, err
	}
	err = s.inTx(ctx, func(tx *transaction) error {
		h, err = readHypervisor(ctx, tx, nova.Hostname)
		if err != nil {
			return err
		}
		h.ServiceName = cmp.Or(nova.Service, h.Hostname)
		h.HypervisorType = cmp.Or(nova.Type, h.HypervisorType)
		h.HypervisorVersion, h.CPUInfo, h.AvailabilityZone = nova.Version, nova.CPUInfo, nova.AvailabilityZone
		if h.NestedProvider, err = createNestedProvider(ctx, tx, h); err != nil {
			return err
		}
		if h.ID, err = insertHost(ctx, tx, h); err != nil {
			return err
		}
		if err := setCapabilities(ctx, tx, h.ID, capabilities); err != nil {
			return err
		}
		if err := s.enqueuePoolUpdate(ctx, tx, h.ServiceName); err != nil {
			return err
		}
		tx.Changed(db.Change{Type: "host", ID: strconv.FormatInt(h.ID, 10)})
		h, err = readHost(ctx, tx, h.ID)
		return err
	})
	return h, err
}

// HypervisorHostname returns the name of the root provider with the given UUID. This name is the hostname of
// the hypervisor that the provider represents.
func (s *Store) HypervisorHostname(ctx context.Context, provider uuid.UUID) (hostname string, err error) {
	err = s.db.QueryRow(ctx, `select name from provider where uuid = $1 and parent_id is null`, provider.String()).
		Scan(&hostname)
	return hostname, db.NotFoundOr(err, "root provider %s", provider)
}

// treeUsedSQL is a SQL condition that is true if a consumer has an allocation from the root provider p or
// from a provider below p.
const treeUsedSQL = `exists (select from allocation a join provider t on t.id = a.provider_id where t.root_id = p.id)`

// readHypervisor reads the root provider of a hypervisor that is to be registered as a host. readHypervisor
// returns a *lease.Fault if the hypervisor is already registered as a host, or if consumers have allocations
// from the hypervisor's providers in Placement.
func readHypervisor(ctx context.Context, tx *transaction, name string) (lease.Host, error) {
	h := lease.Host{HypervisorType: "QEMU", Reservable: true}
	var registered, used bool
	err := tx.QueryRow(ctx, `
		select p.uuid, p.name,
			coalesce((select i.total from inventory i join resource_class c on c.id = i.class_id
				where i.provider_id = p.id and c.name = 'VCPU'), 0),
			coalesce((select i.total from inventory i join resource_class c on c.id = i.class_id
				where i.provider_id = p.id and c.name = 'MEMORY_MB'), 0),
			coalesce((select i.total from inventory i join resource_class c on c.id = i.class_id
				where i.provider_id = p.id and c.name = 'DISK_GB'), 0),
			exists (select from host where host.provider::text = p.uuid),
			`+treeUsedSQL+`
		from provider p
		where p.parent_id is null and (p.name = $1 or p.uuid = $1)
		order by p.name = $1 desc
		limit 1
		for key share of p`, name).
		Scan(&h.Provider, &h.Hostname, &h.VCPUs, &h.MemoryMB, &h.LocalGB, &registered, &used)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return h, lease.Faultf(lease.UnknownHost,
			"Host '%s' not found! Placement has no root provider with this name or UUID.", name)
	case err != nil:
		return h, fmt.Errorf("read hypervisor %s: %w", name, err)
	case registered:
		return h, lease.Faultf(lease.HostInUse, "Host %s is registered already.", h.Hostname)
	case used:
		return h, lease.Faultf(lease.HostInUse,
			"Servers or other consumers hold resources of host %s; it cannot be registered.",
			h.Hostname)
	}
	return h, nil
}

// createNestedProvider creates the nested provider of a host. At this provider, reservations have their
// allocations and inventories.
func createNestedProvider(ctx context.Context, tx *transaction, h lease.Host) (uuid.UUID, error) {
	p := inventory.ProviderDraft{
		UUID:   uuid.NewString(),
		Name:   lease.NestedProviderName(h.Hostname),
		Parent: h.Provider.String(),
	}
	one := inventory.NewInventory(1)
	one.MaxUnit = 1
	err := inventorystore.AddProvider(ctx, tx, p)
	if err == nil {
		err = inventorystore.EnsureClass(ctx, tx, lease.HostResourceClass)
	}
	if err == nil {
		err = inventorystore.SetInventory(ctx, tx, p.UUID, lease.HostResourceClass, one)
	}
	var problem *inventory.Fault
	if errors.As(err, &problem) {
		return uuid.Nil, lease.Faultf(lease.HostInUse, "Host %s cannot be registered: %s",
			h.Hostname, problem.Message)
	}
	return uuid.MustParse(p.UUID), err
}

func insertHost(ctx context.Context, tx *transaction, h lease.Host) (int64, error) {
	err := tx.QueryRow(ctx, `
		insert into host (hostname, provider, nested, service_name, hypervisor_type, vcpus, memory_mb, local_gb, hypervisor_version, cpu_info,
			availability_zone)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		returning id`, h.Hostname, h.Provider, h.NestedProvider, h.ServiceName, h.HypervisorType, h.VCPUs, h.MemoryMB, h.LocalGB,
		h.HypervisorVersion, h.CPUInfo, h.AvailabilityZone).Scan(&h.ID)
	if db.Violates(err, "host_hostname") || db.Violates(err, "host_provider") {
		return 0, lease.Faultf(lease.HostInUse, "Host %s is registered already.", h.Hostname)
	}
	if db.Violates(err, "host_service_name") {
		return 0, lease.Faultf(
			lease.HostInUse,
			"Host %s cannot be registered: its compute service %s serves another registered host, and Nova's "+
				"aggregates contain whole services.",
			h.Hostname,
			h.ServiceName,
		)
	}
	if err != nil {
		return 0, fmt.Errorf("register host %s: %w", h.Hostname, err)
	}
	return h.ID, nil
}
