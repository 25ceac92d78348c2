-- +goose Up
-- Reservations of instances, which share hosts, and of floating IPs.
alter table reservation
    drop constraint reservation_resource_type_check,
    drop constraint reservation_min_hosts_check,
    add constraint reservation_type check (resource_type in ('physical:host', 'virtual:instance', 'flavor:instance', 'virtual:floatingip')),
    add constraint reservation_hosts check ((resource_type = 'physical:host') = (min_hosts >= 1)),
    add column amount             integer not null default 0 check (amount >= 0),
    add column vcpus              bigint  not null default 0 check (vcpus >= 0),
    add column memory_mb          bigint  not null default 0 check (memory_mb >= 0),
    add column disk_gb            bigint  not null default 0 check (disk_gb >= 0),
    add column affinity           text    not null default '' check (affinity in ('', 'affinity', 'anti-affinity')),
    add column flavor             jsonb, -- the flavor as it was when the lease was created
    add column resources          jsonb   not null default '{}', -- amounts that one instance uses of its host, by resource class
    add column network_id         uuid,
    add column required_addresses inet[]  not null default '{}',
    add column aggregate_id       bigint, -- ID of the aggregate in Nova
    add column server_group_id    text    not null default '',
    add column shape              bigint  not null default 0, -- revision: increases when the resources of an active reservation change
    add column shaped             bigint  not null default 0, -- the revision that Nova and Neutron have
    add constraint reservation_flavor check ((resource_type = 'flavor:instance') = (flavor is not null)),
    add constraint reservation_network check ((resource_type = 'virtual:floatingip') = (network_id is not null)),
    add constraint reservation_instances check ((resource_type in ('virtual:instance', 'flavor:instance')) = (resources <> '{}')),
    add constraint reservation_shaped check (shaped <= shape);

-- A reservation of whole hosts is the owner of its allocations, so that no other reservation can have the host at the same
-- time. Allocations of instance reservations have no owner (the zero UUID), so that several of them can share a host.
alter table host_allocation
    add column owner uuid    not null default '00000000-0000-0000-0000-000000000000',
    add column slots integer not null default 1 check (slots >= 1),
    add constraint host_allocation_owner check (owner in (reservation_id, '00000000-0000-0000-0000-000000000000'));
update host_allocation set owner = reservation_id;
alter table host_allocation
    drop constraint host_allocation_once,
    add constraint host_allocation_once exclude using gist (host_id with =, during with &&, owner with <>);

-- The amount of a host that instances may use: for virtual:instance the amount
-- that the host has, for flavor:instance the capacity of the provider's inventory.
create function host_capacity(its_type text, its_host bigint, its_class text) returns numeric language sql stable as $$
    select case
        when its_type = 'flavor:instance' then (
            select floor((i.total - i.reserved) * i.allocation_ratio::numeric)
            from inventory i
            join provider p on p.id = i.provider_id
            join resource_class c on c.id = i.class_id
            where p.uuid = h.provider::text and c.name = its_class)
        else (case its_class when 'VCPU' then h.vcpus when 'MEMORY_MB' then h.memory_mb when 'DISK_GB' then h.local_gb end)::numeric
        end
    from host h
    where h.id = its_host
$$;

-- host_has_room refuses an allocation for instances if the host has not enough capacity at some time.
-- host_has_room locks the host first, so that two writers cannot both use the same free capacity.
-- +goose StatementBegin
create function host_has_room() returns trigger language plpgsql as $$
declare
    crowded text;
begin
    perform from host where id = new.host_id for no key update;
    select format('host %s has no room for %s at %s', new.host_id, u.class, u.at)
    into crowded
    from (
        select t.at, d.key as class, sum(d.value::numeric * a.slots) as used
        from (
            select lower(new.during) as at
            union
            select lower(b.during)
            from host_allocation b
            where b.host_id = new.host_id and new.during @> lower(b.during)) t
        join host_allocation a on a.host_id = new.host_id and a.during @> t.at
        join reservation r on r.id = a.reservation_id
        cross join lateral jsonb_each_text(r.resources) d
        group by t.at, d.key) u
    join reservation mine on mine.id = new.reservation_id and mine.resources ? u.class
    where u.used > coalesce(host_capacity(mine.resource_type, new.host_id, u.class), 0)
    limit 1;
    if found then
        raise exclusion_violation using message = crowded, constraint = 'host_allocation_room', table = 'host_allocation';
    end if;
    return null;
end
$$;
-- +goose StatementEnd
create trigger host_allocation_room after insert or update on host_allocation
    for each row when (new.owner <> new.reservation_id) execute function host_has_room();

-- Floating IPs that can be reserved. The network and the subnet of a floating IP can be deleted while this row stays.
create table floatingip (
    id         uuid        primary key,
    network_id uuid        not null,
    subnet_id  uuid        not null,
    address    inet        not null,
    reservable boolean     not null default true,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz,
    constraint floatingip_once unique (subnet_id, address)
);
create index floatingip_network on floatingip (network_id);

-- A row says which reservation has which floating IP in which time range, as host_allocation does for hosts.
create table floatingip_allocation (
    reservation_id uuid      not null references reservation on delete cascade,
    floatingip_id  uuid      not null constraint floatingip_allocation_address references floatingip,
    during         tstzrange not null check (not isempty(during)),
    primary key (reservation_id, floatingip_id),
    constraint floatingip_allocation_once exclude using gist (floatingip_id with =, during with &&)
);
-- +goose Down
drop table floatingip_allocation, floatingip;
delete from lease l using reservation r where r.lease_id = l.id and r.resource_type <> 'physical:host';
drop trigger host_allocation_room on host_allocation;
drop function host_has_room;
drop function host_capacity;
alter table host_allocation
    drop constraint host_allocation_once,
    add constraint host_allocation_once exclude using gist (host_id with =, during with &&),
    drop column owner,
    drop column slots;
alter table reservation
    drop constraint reservation_type,
    drop constraint reservation_hosts,
    drop constraint reservation_flavor,
    drop constraint reservation_network,
    drop constraint reservation_instances,
    drop constraint reservation_shaped,
    drop column amount,
    drop column vcpus,
    drop column memory_mb,
    drop column disk_gb,
    drop column affinity,
    drop column flavor,
    drop column resources,
    drop column network_id,
    drop column required_addresses,
    drop column aggregate_id,
    drop column server_group_id,
    drop column shape,
    drop column shaped,
    add constraint reservation_resource_type_check check (resource_type = 'physical:host'),
    add constraint reservation_min_hosts_check check (min_hosts >= 1);
