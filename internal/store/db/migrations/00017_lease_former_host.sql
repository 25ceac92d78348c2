-- +goose Up
-- The hosts that healing has replaced in reservations of hosts of running leases. Servers of the reservation can
-- still be on them, and are deleted at the end of the lease. reservation_id has no foreign key, because the
-- deletion can be repeated after the lease was deleted.
create table reservation_former_host (
    reservation_id uuid not null,
    host_id bigint not null references host (id) on delete cascade,
    left_at timestamptz not null default clock_timestamp(),
    primary key (reservation_id, host_id)
);

-- The reservation that last began to create a network on this segment in Neutron. It has no foreign key, because
-- the removal of a network can be repeated after its lease was deleted.
alter table reservable_resource add column creator_id uuid;
update reservable_resource f
set creator_id = r.id
from resource_allocation a
join reservation r on r.id = a.reservation_id
join lease l on l.id = r.lease_id
join event e on e.lease_id = l.id and e.event_type = 'start_lease'
where a.resource_id = f.id and f.resource_type = 'network'
    and l.status in ('ACTIVE', 'TERMINATING', 'ERROR', 'DELETING') and e.status = 'DONE';
create index reservable_resource_creator on reservable_resource (creator_id) where creator_id is not null;
