-- +goose Up
-- Network segments and devices that leases can reserve. The attributes are those that every resource of its type has.
create table reservable_resource (
    id            uuid        primary key,
    resource_type text        not null check (resource_type in ('network', 'device')),
    attributes    jsonb       not null,
    capabilities  jsonb       not null default '{}',
    created_at    timestamptz not null default clock_timestamp(),
    updated_at    timestamptz
);
create unique index reservable_resource_segment
    on reservable_resource ((attributes->>'network_type'), coalesce(attributes->>'physical_network', ''), (attributes->>'segment_id'))
    where resource_type = 'network';
create unique index reservable_resource_device on reservable_resource ((attributes->>'name')) where resource_type = 'device';

-- Names of capabilities. Lists contain a private property only on request.
create table reservable_resource_property (
    id            uuid        primary key,
    resource_type text        not null,
    name          text        not null check (char_length(name) between 1 and 64),
    private       boolean     not null default false,
    created_at    timestamptz not null default clock_timestamp(),
    updated_at    timestamptz,
    constraint reservable_resource_property_name unique (resource_type, name)
);

create table resource_allocation (
    reservation_id uuid      not null references reservation on delete cascade,
    resource_id    uuid      not null constraint resource_allocation_resource references reservable_resource,
    during         tstzrange not null check (not isempty(during)),
    primary key (reservation_id, resource_id),
    constraint resource_allocation_once exclude using gist (resource_id with =, during with &&)
);

alter table reservation
    add column network_name text not null default '',
    add column network_description text not null default '',
    add column network_properties text not null default '',
    add column cloud_network_id text not null default '',
    drop constraint reservation_type,
    add constraint reservation_type check (resource_type in
        ('physical:host', 'virtual:instance', 'flavor:instance', 'virtual:floatingip', 'network', 'device')),
    drop constraint reservation_hosts,
    add constraint reservation_hosts check ((resource_type in ('physical:host', 'device')) = (min_hosts >= 1)),
    add constraint reservation_network_name check ((resource_type = 'network') = (network_name <> ''));
-- +goose Down
delete from reservation where resource_type in ('network', 'device');
alter table reservation
    drop constraint reservation_network_name,
    drop constraint reservation_hosts,
    add constraint reservation_hosts check ((resource_type = 'physical:host') = (min_hosts >= 1)),
    drop constraint reservation_type,
    add constraint reservation_type check (resource_type in ('physical:host', 'virtual:instance', 'flavor:instance', 'virtual:floatingip')),
    drop column cloud_network_id,
    drop column network_properties,
    drop column network_description,
    drop column network_name;
drop table resource_allocation;
drop table reservable_resource_property;
drop table reservable_resource;
