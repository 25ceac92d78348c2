-- +goose Up
create table network (
    id               uuid primary key,
    project          text        not null,
    name             text        not null,
    description      text        not null,
    admin_up         boolean     not null,
    shared           boolean     not null,
    external         boolean     not null,
    mtu              integer     not null check (mtu between 68 and 65535),
    port_security    boolean     not null,
    type             text        not null check (type in ('vxlan', 'vlan', 'flat', 'local')),
    physical_network text        not null default '',
    segment          integer,
    revision         bigint      not null default 1,
    created_at       timestamptz not null default now(),
    updated_at       timestamptz not null default now(),
    check ((segment is not null) = (type in ('vxlan', 'vlan')))
);
create unique index network_segment on network (type, physical_network, segment);
create unique index network_flat on network (physical_network) where type = 'flat';
create index network_project on network (project);
create index network_name on network (name);
-- VXLAN networks get their VNIs from this sequence; a VNI that the request of another network has named is skipped.
create sequence network_vni maxvalue 16777215 cycle;

create table subnet (
    id              uuid primary key,
    network_id      uuid        not null references network,
    project         text        not null,
    name            text        not null,
    description     text        not null,
    cidr            cidr        not null,
    gateway         inet,
    dhcp            boolean     not null,
    pools           jsonb       not null, -- [{"start": …, "end": …}]
    dns             text[]      not null,
    routes          jsonb       not null, -- [{"destination": …, "nexthop": …}]
    ra_mode         text        not null,
    address_mode    text        not null,
    revision        bigint      not null default 0,
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now()
);
create index subnet_network on subnet (network_id);
create index subnet_name on subnet (name);

create table port (
    id              uuid primary key,
    network_id      uuid        not null references network,
    project         text        not null,
    name            text        not null,
    description     text        not null,
    admin_up        boolean     not null,
    mac             macaddr     not null,
    device_id       text        not null,
    device_owner    text        not null,
    status          text        not null check (status in ('ACTIVE', 'DOWN')),
    host            text        not null,
    vnic            text        not null,
    profile         jsonb       not null,
    vif             text        not null,
    port_security   boolean     not null,
    ignored_reports bigint      not null default 0, -- number of reports that changed nothing
    revision        bigint      not null default 1,
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    constraint port_mac unique (network_id, mac),
    check ((host = '') = (vif = 'unbound')),
    check (status <> 'ACTIVE' or (admin_up and vif not in ('unbound', 'binding_failed')))
);
create index port_project on port (project);
create index port_name on port (name);
create index port_device on port (device_id);
create index port_host on port (host);
create index port_unwired on port (host) where vif = 'binding_failed';

create table port_address (
    subnet_id uuid    not null references subnet,
    address   inet    not null,
    port_id   uuid    not null references port on delete cascade,
    position  integer not null, -- position in the port's list of addresses
    primary key (subnet_id, address)
);
create index port_address_port on port_address (port_id);

-- A row says that an entity has to report before the port may become ACTIVE.
create table provisioning_block (
    port_id  uuid        not null references port on delete cascade,
    entity   text        not null,
    host     text        not null, -- only reports from this host count; empty: no single host
    since    timestamptz not null,
    deadline timestamptz,
    primary key (port_id, entity)
);

create table agent (
    id             uuid primary key,
    agent_type     text        not null,
    host           text        not null,
    binary_name    text        not null,
    topic          text        not null,
    description    text        not null default '',
    admin_up       boolean     not null default true,
    configurations jsonb       not null,
    created_at     timestamptz not null default now(),
    started_at     timestamptz not null default now(),
    heartbeat_at   timestamptz not null,
    constraint agent_identity unique (agent_type, host)
);

-- A row says that a DHCP agent hosts a network.
create table dhcp_binding (
    network_id uuid not null references network on delete cascade,
    agent_id   uuid not null references agent on delete cascade,
    constraint dhcp_binding_pair primary key (network_id, agent_id)
);
create index dhcp_binding_agent on dhcp_binding (agent_id);

-- The events that Nova must get. A row stays after its port is deleted; it is deleted when Nova has got the event.
create table nova_event (
    id         bigint      generated always as identity primary key,
    port_id    uuid        not null,
    server     text        not null,
    name       text        not null,
    status     text        not null,
    tag        text        not null,
    created_at timestamptz not null default now()
);
create index nova_event_port on nova_event (port_id);
-- +goose Down
drop table nova_event, dhcp_binding, agent, provisioning_block, port_address, port, subnet, network;
drop sequence network_vni;
