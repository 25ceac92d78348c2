-- +goose Up
create extension if not exists btree_gist;

-- Hosts that can be reserved: hypervisors with a resource provider. Each
-- host has a nested provider, which at most one reservation uses at a time.
create table host (
    id                 bigint generated always as identity primary key,
    hostname           text        not null constraint host_hostname unique,
    provider           uuid        not null constraint host_provider unique,
    nested             uuid        not null constraint host_nested unique,
    service_name       text        not null,
    hypervisor_type    text        not null default '',
    hypervisor_version integer     not null default 0,
    vcpus              bigint      not null check (vcpus >= 0),
    memory_mb          bigint      not null check (memory_mb >= 0),
    local_gb           bigint      not null check (local_gb >= 0),
    cpu_info           text        not null default '',
    availability_zone  text        not null default '',
    reservable         boolean     not null default true,
    created_at         timestamptz not null default now(),
    updated_at         timestamptz
);

create table host_property (
    id         uuid        primary key,
    name       text        not null constraint host_property_name unique check (char_length(name) between 1 and 64),
    private    boolean     not null default false,
    created_at timestamptz not null default now(),
    updated_at timestamptz
);

create table host_capability (
    host_id     bigint not null references host on delete cascade,
    property_id uuid   not null references host_property,
    value       text   not null,
    primary key (host_id, property_id)
);
create index host_capability_property on host_capability (property_id);

create table lease (
    id                  uuid        primary key,
    name                text        not null check (char_length(name) between 1 and 80),
    user_id             text        not null,
    project_id          text        not null,
    status              text        not null check (status in ('CREATING', 'PENDING', 'STARTING', 'ACTIVE', 'TERMINATING',
                                        'TERMINATED', 'UPDATING', 'DELETING', 'ERROR')),
    start_at            timestamptz not null,
    end_at              timestamptz not null,
    degraded            boolean     not null default false,
    delete_requested_at timestamptz,
    created_at          timestamptz not null default clock_timestamp(),
    updated_at          timestamptz,
    constraint lease_dates check (start_at <= end_at),
    constraint lease_deletion check (status <> 'DELETING' or delete_requested_at is not null)
);
create index lease_project on lease (project_id, created_at);

create table reservation (
    id                    uuid        primary key,
    lease_id              uuid        not null references lease on delete cascade,
    position              integer     not null, -- position in the request
    resource_type         text        not null check (resource_type = 'physical:host'),
    status                text        not null check (status in ('pending', 'active', 'deleted', 'error')),
    min_hosts             integer     not null check (min_hosts >= 1),
    max_hosts             integer     not null,
    hypervisor_properties text        not null,
    resource_properties   text        not null,
    before_end            text        not null check (before_end in ('', 'default', 'snapshot')),
    missing_resources     boolean     not null default false,
    resources_changed     boolean     not null default false,
    last_error            text        not null default '',
    created_at            timestamptz not null default clock_timestamp(),
    updated_at            timestamptz,
    constraint reservation_range check (min_hosts <= max_hosts),
    constraint reservation_failure check (status = 'error' or last_error = '')
);
create index reservation_lease on reservation (lease_id);

create table event (
    id         uuid        primary key,
    lease_id   uuid        not null references lease on delete cascade,
    event_type text        not null check (event_type in ('start_lease', 'end_lease', 'before_end_lease')),
    at         timestamptz not null,
    status     text        not null check (status in ('UNDONE', 'IN_PROGRESS', 'DONE', 'ERROR')),
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz,
    constraint event_once unique (lease_id, event_type)
);

-- A row says which reservation has which host in which half-open time range: a lease may begin at the second at which another
-- lease ends. The row is deleted when the reservation has released the host, which may be later than the end of the lease.
create table host_allocation (
    reservation_id uuid      not null references reservation on delete cascade,
    host_id        bigint    not null constraint host_allocation_host references host,
    during         tstzrange not null check (not isempty(during)),
    primary key (reservation_id, host_id),
    constraint host_allocation_once exclude using gist (host_id with =, during with &&)
);
-- +goose Down
drop table host_allocation, event, reservation, lease, host_capability, host_property, host;
