package leasestore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// RefreshHosts stores in the rows of hosts what Nova says about their hypervisors. If Nova does not report a
// value, RefreshHosts keeps the stored value. If the compute service of a host has changed, RefreshHosts also
// updates Nova's aggregate "freepool". RefreshHosts does not store the compute service of one registered host
// for another host.
func (s *Store) RefreshHosts(ctx context.Context, all []lease.Hypervisor) error {
	columns := make([][]string, 5)
	versions := make([]int, len(all))
	for i, h := range all {
		for j, value := range []string{h.Hostname, h.Service, h.Type, h.CPUInfo, h.AvailabilityZone} {
			columns[j] = append(columns[j], value)
		}
		versions[i] = h.Version
	}
	return s.inTx(ctx, func(tx *transaction) error {
		services, err := db.QueryAll(ctx, tx, pgx.RowTo[string],
			refreshHostsSQL, columns[0], columns[1], columns[2], columns[3], columns[4], versions)
		if err != nil {
			return fmt.Errorf("refresh hosts: %w", err)
		}
		for _, service := range services {
			if err := s.enqueuePoolUpdate(ctx, tx, service); err != nil {
				return err
			}
		}
		return nil
	})
}

// refreshHostsSQL returns the former and the new compute services of the hosts whose compute service has
// changed.
const refreshHostsSQL = `
	with seen as (
		select *
		from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[]) as s (hostname, service, type, cpu_info, zone, version)),
	was as (
		select h.id, h.service_name,
			case when exists (select from host o where o.id <> h.id and o.service_name = s.service)
					or exists (select from host o join seen t using (hostname) where o.id < h.id and t.service = s.service)
				then h.service_name else coalesce(nullif(s.service, ''), h.service_name) end as service,
			coalesce(nullif(s.type, ''), h.hypervisor_type) as type,
			coalesce(nullif(s.cpu_info, ''), h.cpu_info) as cpu_info,
			coalesce(nullif(s.zone, ''), h.availability_zone) as zone,
			coalesce(nullif(s.version, 0), h.hypervisor_version) as version
		from host h
		join seen s using (hostname)
		order by h.id
		for update of h),
	refreshed as (
		update host h
		set service_name = w.service, hypervisor_type = w.type, cpu_info = w.cpu_info, availability_zone = w.zone,
			hypervisor_version = w.version, updated_at = clock_timestamp()
		from was w
		where h.id = w.id and (h.service_name, h.hypervisor_type, h.cpu_info, h.availability_zone, h.hypervisor_version)
			is distinct from (w.service, w.type, w.cpu_info, w.zone, w.version)
		returning w.service_name, w.service)
	select unnest(array[service_name, service])
	from refreshed
	where service_name <> service`
