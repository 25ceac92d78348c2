-- +goose Up
-- The schema of the first release. Each group below has the tables of one package in internal/store. A table
-- stands before the tables that refer to it, its indexes and triggers stand below it, and the rows with
-- which every database begins stand at the end.

-- For exclusion constraints that compare IDs for equality.
create extension if not exists btree_gist;


-- # db: which programs and which settings the database accepts

-- The oldest program that may use this schema, by the newest migration that this program contains. An older
-- program refuses the database. A migration that removes something which older programs use raises
-- oldest_program.
create table schema_support (
    single         boolean primary key default true check (single),
    oldest_program bigint  not null
);

-- How the processes of this database authenticate callers (BERTH_AUTH). A process with another setting
-- refuses to start: one process without authentication would accept what all the others refuse.
create table authentication (
    single boolean     primary key default true check (single),
    mode   text        not null check (mode in ('noauth', 'keystone')),
    set_at timestamptz not null default now()
);


-- # outbox: notes for Temporal

-- A note says that a workflow should run and read its row again. A transaction that changes a row also
-- writes the note. A relay claims the note for a while, delivers it to Temporal, and then deletes it. Each
-- workflow has at most one note: a further nudge is merged into the existing note.
create table note (
    workflow_id       text primary key,
    workflow          text        not null,
    fresh             boolean     not null, -- true: no workflow with this ID can be running
    summary           text        not null,
    attributes        jsonb       not null,
    version           bigint      not null default 1,
    attempts          integer     not null default 0,
    -- A relay may claim the note from this time on. A claim sets it to the end of the claim.
    due_at            timestamptz not null,
    created_at        timestamptz not null default now(),
    last_error        text        not null default '',
    seen              jsonb, -- what the new workflow would read first; not used after another nudge was merged into the note
    -- Start the workflow again even if it has completed, because its row is open.
    restart           boolean     not null default false,
    -- 0 urgent, 1 normal, 2 bulk: a relay claims urgent notes first.
    priority          smallint    not null default 1 check (priority between 0 and 2),
    -- How many times Temporal has refused this note for a reason that concerns only this note.
    refusals          integer     not null default 0,
    -- When the note was set aside, because Temporal refused it too often; null for all other notes.
    set_aside_at      timestamptz,
    -- The request that enqueued the note, and its trace. The workflow that the note starts or signals
    -- continues the trace.
    traceparent       text,
    request_id        text,
    global_request_id text,
    -- The time since which the note is due. Every attempt to deliver the note moves due_at to the time of the
    -- next attempt, but not first_due_at.
    first_due_at      timestamptz
);
create index note_claim on note (priority, due_at);

-- The Temporal namespace that runs the workflows of these rows. Another namespace has none of these
-- workflows. berth creates a missing namespace again only if the database was bound to its name.
create table temporal_namespace (
    single     boolean     primary key default true check (single),
    id         text        not null,
    adopted_at timestamptz not null default now(),
    name       text        not null default ''
);

-- The result of the last comparison of a projection (Temporal's executions, search attributes) with the rows.
create table projection (
    name        text        primary key,
    compared_at timestamptz not null,
    compared    bigint      not null,
    unattended  bigint      not null default 0,
    orphans     bigint      not null default 0,
    different   bigint      not null default 0,
    examples    text[]      not null default '{}'
);


-- # inventorystore: the Placement API

-- Resource classes and traits. The standard classes and traits have fixed IDs in the order of the libraries
-- os-resource-classes and os-traits. The IDs of custom classes and traits begin at 10000, so that a list that
-- is sorted by ID contains the standard names first.
create sequence resource_class_id as integer minvalue 10000;
create table resource_class (
    id         integer primary key default nextval('resource_class_id'),
    name       text collate "C" not null constraint resource_class_name unique,
    created_at timestamptz not null default now(),
    updated_at timestamptz
);

create sequence trait_id as integer minvalue 10000;
create table trait (
    id         integer primary key default nextval('trait_id'),
    name       text collate "C" not null constraint trait_name unique,
    created_at timestamptz not null default now()
);

-- UUIDs are stored as text, because clients see lists that are sorted by the text. The UUID of a provider has
-- the canonical form; the UUID of a consumer or aggregate is stored as the client has sent it. Every
-- allocation increments the generation of its provider: free space lets PostgreSQL update the row in the same
-- page.
create sequence provider_id;
create table provider (
    id         bigint primary key default nextval('provider_id'),
    uuid       text collate "C" not null constraint provider_uuid unique,
    name       text not null constraint provider_name unique,
    generation bigint not null default 0,
    parent_id  bigint constraint provider_parent references provider,
    root_id    bigint not null constraint provider_root references provider,
    created_at timestamptz not null default now(),
    updated_at timestamptz
) with (fillfactor = 70);
create index provider_parent on provider (parent_id);
create index provider_root on provider (root_id);

-- The column used is the allocated amount. Triggers of the table allocation keep it, whichever statement
-- writes the allocations, so that a write and a read cost the same at 10 and at 1,000,000 allocations. Every
-- allocation updates its inventory: free space lets PostgreSQL update the row in the same page.
create table inventory (
    provider_id      bigint not null references provider on delete cascade,
    class_id         integer not null constraint inventory_class references resource_class,
    total            integer not null check (total > 0),
    reserved         integer not null check (reserved >= 0),
    min_unit         integer not null check (min_unit > 0),
    max_unit         integer not null check (max_unit > 0),
    step_size        integer not null check (step_size > 0),
    allocation_ratio double precision not null,
    created_at       timestamptz not null default now(),
    updated_at       timestamptz,
    used             bigint not null default 0 check (used >= 0),
    primary key (provider_id, class_id)
) with (fillfactor = 70);
create index inventory_class on inventory (class_id);

create table provider_aggregate (
    provider_id bigint not null references provider on delete cascade,
    aggregate   text collate "C" not null,
    primary key (provider_id, aggregate)
);
create index provider_aggregate_aggregate on provider_aggregate (aggregate);

create table provider_trait (
    provider_id bigint not null references provider on delete cascade,
    trait_id    integer not null constraint provider_trait_trait references trait,
    primary key (provider_id, trait_id)
);
create index provider_trait_trait on provider_trait (trait_id);

-- A consumer exists exactly while it has allocations. The generation of a consumer counts the writes since
-- the consumer was created.
--
-- A consumer without project and user was imported from an old version of Placement, which stored allocations
-- without a record of the consumer. Such a consumer has the generation 1, as if it had been written once. The
-- next write of its allocations, or an operator's request for all such consumers, sets the project and user.
create table consumer (
    id         bigint generated always as identity primary key,
    uuid       text collate "C" not null constraint consumer_uuid unique,
    project    text,
    user_id    text,
    type       text,
    generation bigint not null default 1 check (generation > 0),
    created_at timestamptz not null default now(),
    updated_at timestamptz,
    constraint consumer_record check ((project is null) = (user_id is null))
) with (fillfactor = 70);
create index consumer_project on consumer (project, user_id);
create index consumer_unrecorded on consumer (id) where project is null;

-- The foreign key allocation_inventory prevents the deletion of an inventory that has allocations.
create table allocation (
    consumer_id bigint not null references consumer on delete cascade,
    provider_id bigint not null,
    class_id    integer not null,
    amount      integer not null check (amount > 0),
    created_at  timestamptz not null default now(),
    -- The place among the allocations of the consumer, in the order in which the client has written them.
    position    integer not null default 0,
    primary key (consumer_id, provider_id, class_id),
    constraint allocation_inventory foreign key (provider_id, class_id) references inventory
);
create index allocation_inventory on allocation (provider_id, class_id) include (amount);

-- count_usage keeps inventory.used.
-- +goose StatementBegin
create function count_usage() returns trigger language plpgsql as $$
begin
    if tg_op in ('UPDATE', 'DELETE') then
        update inventory i
        set used = i.used - a.amount
        from (select provider_id, class_id, sum(amount) as amount from old_allocation group by provider_id, class_id) a
        where i.provider_id = a.provider_id and i.class_id = a.class_id;
    end if;
    if tg_op in ('INSERT', 'UPDATE') then
        update inventory i
        set used = i.used + a.amount
        from (select provider_id, class_id, sum(amount) as amount from new_allocation group by provider_id, class_id) a
        where i.provider_id = a.provider_id and i.class_id = a.class_id;
    end if;
    return null;
end
$$;
-- +goose StatementEnd
create trigger allocation_inserted after insert on allocation
    referencing new table as new_allocation for each statement execute function count_usage();
create trigger allocation_updated after update on allocation
    referencing old table as old_allocation new table as new_allocation for each statement execute function count_usage();
create trigger allocation_deleted after delete on allocation
    referencing old table as old_allocation for each statement execute function count_usage();

-- The changes of generations and their actors, in the order of the writes. A row describes what one write
-- changed: a consumer, a provider, or a consumer and one of its providers. Most writes need only one row. If
-- the generation before the change is null, the write created the consumer or provider; if the generation
-- after the change is null, the write deleted it. There are no foreign keys to consumers and providers,
-- because the history stays after their deletion.
create table generation_change (
    id            bigint generated always as identity primary key,
    at            timestamptz not null default clock_timestamp(),
    actor         text not null,
    cause         text not null,
    consumer      text collate "C",
    consumer_from bigint,
    consumer_to   bigint,
    provider      text collate "C",
    provider_from bigint,
    provider_to   bigint,
    check (num_nonnulls(consumer, provider) > 0),
    check ((consumer is null) = (num_nonnulls(consumer_from, consumer_to) = 0)),
    check ((provider is null) = (num_nonnulls(provider_from, provider_to) = 0))
);
create index generation_change_consumer on generation_change (consumer, id) where consumer is not null;
create index generation_change_provider on generation_change (provider, id) where provider is not null;


-- # networkstore: the networking API

-- VXLAN networks get their VNIs from this sequence; a VNI that the request of another network has named is
-- skipped.
create sequence network_vni maxvalue 16777215 cycle;
create table network (
    id                      uuid primary key,
    project                 text        not null,
    name                    text        not null,
    description             text        not null,
    admin_up                boolean     not null,
    shared                  boolean     not null,
    external                boolean     not null,
    -- An MTU below 68 bytes is allowed as long as the network has no subnet.
    mtu                     integer     not null check (mtu between 1 and 65535),
    port_security           boolean     not null,
    type                    text        not null check (type in ('vxlan', 'vlan', 'flat', 'local')),
    physical_network        text        not null default '',
    segment                 integer,
    revision                bigint      not null default 1,
    created_at              timestamptz not null default now(),
    updated_at              timestamptz not null default now(),
    tags                    text[]      not null default '{}',
    -- The zones whose DHCP agents may serve the network; empty: every zone.
    availability_zone_hints text[]      not null default '{}',
    check ((segment is not null) = (type in ('vxlan', 'vlan')))
);
create unique index network_segment on network (type, physical_network, segment);
create unique index network_flat on network (physical_network) where type = 'flat';
create index network_project on network (project);
create index network_name on network (name);

create table subnet (
    id            uuid primary key,
    network_id    uuid        not null references network,
    project       text        not null,
    name          text        not null,
    description   text        not null,
    cidr          cidr        not null,
    gateway       inet,
    dhcp          boolean     not null,
    pools         jsonb       not null, -- [{"start": …, "end": …}]
    dns           text[]      not null,
    routes        jsonb       not null, -- [{"destination": …, "nexthop": …}]
    ra_mode       text        not null,
    address_mode  text        not null,
    revision      bigint      not null default 0,
    created_at    timestamptz not null default now(),
    updated_at    timestamptz not null default now(),
    tags          text[]      not null default '{}',
    -- The device owners of the ports that get addresses from the subnet; empty: every port.
    service_types text[]      not null default '{}'
);
create index subnet_network on subnet (network_id);
create index subnet_name on subnet (name);
create index subnet_project on subnet (project);

create table port (
    id               uuid primary key,
    network_id       uuid        not null references network,
    project          text        not null,
    name             text        not null,
    description      text        not null,
    admin_up         boolean     not null,
    mac              macaddr     not null,
    device_id        text        not null,
    device_owner     text        not null,
    status           text        not null constraint port_status check (status in ('ACTIVE', 'DOWN', 'BUILD', 'ERROR')),
    host             text        not null,
    vnic             text        not null,
    profile          jsonb       not null,
    vif              text        not null,
    port_security    boolean     not null,
    ignored_reports  bigint      not null default 0, -- number of reports that changed nothing
    revision         bigint      not null default 1,
    created_at       timestamptz not null default now(),
    updated_at       timestamptz not null default now(),
    binding_revision bigint      not null default 1, -- the revision of the port's last binding
    tags             text[]      not null default '{}',
    address_pairs    jsonb       not null default '[]', -- [{"ip": …, "mac": …}]
    dhcp_options     jsonb       not null default '[]', -- [{"opt_name": …, "opt_value": …, "ip_version": …}]
    vif_details      jsonb, -- the VIF details that the controller gives to Nova; null if no controller wires the port
    security_groups  uuid[]      not null default '{}',
    switch           jsonb, -- the configuration of the Open vSwitch that wires the port; null: the default configuration
    constraint port_mac unique (network_id, mac),
    constraint port_bound check (case vif when 'unbound' then host = '' when 'distributed' then true else host <> '' end),
    constraint port_active check (status not in ('ACTIVE', 'BUILD') or (admin_up and vif not in ('unbound', 'binding_failed'))),
    constraint port_wired check (vif_details is null or vif not in ('unbound', 'binding_failed', 'distributed'))
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

-- The bindings of a port to other hosts than its own: hosts to which the port may move, or hosts on which a
-- distributed port is wired.
create table port_binding (
    port_id uuid    not null references port on delete cascade,
    host    text    not null,
    status  text    not null check (status in ('INACTIVE', 'BUILD', 'ACTIVE')),
    vnic    text    not null,
    profile jsonb   not null,
    vif     text    not null,
    plugged boolean not null, -- the agent of an INACTIVE binding has reported
    switch  jsonb, -- as port.switch
    primary key (port_id, host)
);

-- A row says that an entity has to report before a port or a trunk is ready. The code that deletes an object
-- must also delete the object's rows.
create table block (
    object_id    uuid        not null,
    entity       text        not null,
    host         text        not null, -- only reports from this host count; empty: no single host
    since        timestamptz not null,
    deadline     timestamptz,
    object_type  text        not null default 'port',
    min_revision bigint      not null default 1,  -- reports about an earlier revision of the object do not count
    state        text        not null default '', -- the last report of the entity's agent
    fatal        boolean     not null default false,
    -- Who has added the block through the API or a signal; empty: berth's own rules. A block with an owner
    -- keeps its own deadline.
    owner        text        not null default '',
    primary key (object_id, entity),
    constraint block_deadline check (deadline is not null or not fatal)
);

create table trunk (
    id          uuid primary key,
    project     text        not null,
    name        text        not null,
    description text        not null,
    admin_up    boolean     not null,
    port_id     uuid        not null constraint trunk_parent references port constraint trunk_port unique,
    tags        text[]      not null,
    revision    bigint      not null default 1,
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now()
);
create index trunk_project on trunk (project);
create index trunk_name on trunk (name);

create table subport (
    port_id           uuid    primary key constraint subport_member references port,
    trunk_id          uuid    not null references trunk,
    segmentation_type text    not null,
    segmentation_id   integer not null,
    constraint subport_segment unique (trunk_id, segmentation_type, segmentation_id)
);

create table security_group (
    id          uuid primary key,
    project     text        not null,
    name        text        not null,
    description text        not null,
    stateful    boolean     not null,
    tags        text[]      not null,
    revision    bigint      not null default 1,
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now()
);
-- A new port belongs to the default group of its project, unless the request names other groups.
create unique index security_group_default on security_group (project) where name = 'default';
create index security_group_project on security_group (project);
create index security_group_name on security_group (name);

create table security_group_rule (
    id           uuid primary key,
    group_id     uuid        not null references security_group on delete cascade,
    project      text        not null,
    description  text        not null,
    direction    text        not null check (direction in ('ingress', 'egress')),
    ethertype    text        not null check (ethertype in ('IPv4', 'IPv6')),
    protocol     text        not null, -- empty: any protocol
    port_min     integer,
    port_max     integer,
    remote_ip    text        not null, -- empty: any address
    remote_group uuid references security_group on delete cascade,
    revision     bigint      not null default 1,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    check (remote_ip = '' or remote_group is null)
);
create unique index security_group_rule_same on security_group_rule (group_id, direction, ethertype, protocol, coalesce(port_min, -1),
    coalesce(port_max, -1), remote_ip, coalesce(remote_group, '00000000-0000-0000-0000-000000000000'));
create index security_group_rule_remote on security_group_rule (remote_group);
create index security_group_rule_project on security_group_rule (project);

-- The quotas of projects that differ from the configured default quotas.
create table quota (
    project  text   not null,
    resource text   not null,
    amount   bigint not null check (amount >= -1), -- -1: any number
    primary key (project, resource)
);

-- The networking agents.
create table agent (
    id                uuid primary key,
    agent_type        text        not null,
    host              text        not null,
    binary_name       text        not null,
    topic             text        not null,
    description       text        not null default '',
    admin_up          boolean     not null default true,
    configurations    jsonb       not null,
    created_at        timestamptz not null default now(),
    started_at        timestamptz not null default now(),
    heartbeat_at      timestamptz not null,
    -- The versions of RPC objects that the agent accepts, as the agent has reported them at its start.
    versions          jsonb       not null default '{}',
    availability_zone text        not null default '', -- empty: the agent reports no zone
    constraint agent_identity unique (agent_type, host)
);

-- A row says that a DHCP agent hosts a network.
create table dhcp_binding (
    network_id uuid not null references network on delete cascade,
    agent_id   uuid not null references agent on delete cascade,
    constraint dhcp_binding_pair primary key (network_id, agent_id)
);
create index dhcp_binding_agent on dhcp_binding (agent_id);

-- The tunnel endpoints that agents have reported.
create table tunnel_end (
    type text not null,
    ip   inet not null,
    host text not null, -- empty if the agent did not report the host
    primary key (type, ip)
);
create unique index tunnel_end_host on tunnel_end (type, host) where host <> '';

-- The MAC that distributed routers use on a host.
create table router_mac (
    host text    primary key,
    mac  macaddr not null unique
);


-- # agentstore: what proves that a message comes from the agents of one host

-- A credential proves that a message comes from the agents of a host. It is the SHA-256 of a token, or an
-- Ed25519 public key; both have 32 bytes.
create table agent_credential (
    id         uuid primary key default gen_random_uuid(),
    host       text not null check (host <> '' and octet_length(host) <= 255),
    kind       text not null check (kind in ('token', 'key')),
    value      bytea not null check (octet_length(value) = 32),
    created_at timestamptz not null default clock_timestamp(),
    used_on    date, -- the last day, in UTC, on which the credential was used
    unique (kind, value)
);
create index agent_credential_host on agent_credential (host);

-- A RabbitMQ virtual host that only the agents of one host use: a message in it proves that its sender is
-- this host.
create table agent_virtual_host (
    id          uuid primary key default gen_random_uuid(),
    host        text not null unique check (host <> '' and octet_length(host) <= 255),
    name        text not null unique check (name <> '' and octet_length(name) <= 255),
    agent_types text[] not null default '{}', -- types of agents that the host may report; empty: all types
    created_at  timestamptz not null default clock_timestamp()
);


-- # notificationstore: messages to agents, to Nova and to the webhook of provisioning

-- The notifications for agents, in order for each network. A notification stays after its object is deleted.
-- Sent notifications are kept for a while, because RabbitMQ may lose a message that it has accepted.
create table agent_notification (
    id            bigint      generated always as identity primary key,
    network_id    uuid        not null, -- the zero UUID if the object belongs to no network
    kind          text        not null,
    event         text        not null,
    object_id     uuid        not null,
    data          jsonb       not null,
    at            timestamptz not null default clock_timestamp(),
    sent_at       timestamptz,
    -- Until this time, one process delivers the row without Temporal, and no other process delivers the row.
    claimed_until timestamptz
);
create index agent_notification_network on agent_notification (network_id, id) where sent_at is null;
create index agent_notification_sent on agent_notification (sent_at) where sent_at is not null;

-- The events that Nova must get. A row stays after its port is deleted; it is deleted when Nova has got the
-- event.
create table nova_event (
    id            bigint      generated always as identity primary key,
    port_id       uuid        not null,
    server        text        not null,
    name          text        not null,
    status        text        not null,
    tag           text        not null,
    created_at    timestamptz not null default now(),
    claimed_until timestamptz -- as agent_notification.claimed_until
);
create index nova_event_port on nova_event (port_id);
-- If a port changes several times before Nova gets the event network-changed, one event is enough.
create unique index nova_event_changed on nova_event (port_id, server) where name = 'network-changed';

-- The notifications that nothing blocks a port or a trunk any more, which are not delivered to the webhook
-- yet, in order. A notification stays after its port or trunk is deleted.
create table provisioning_notification (
    id           bigint      generated always as identity primary key,
    object_id    uuid        not null,
    message_id   uuid        not null default gen_random_uuid(),
    at           timestamptz not null default clock_timestamp(),
    notification jsonb       not null
);
create index provisioning_notification_object on provisioning_notification (object_id, id);


-- # leasestore: the reservation API

-- Hosts that can be reserved: hypervisors with a resource provider. Each host has a nested provider, which at
-- most one reservation uses at a time. Nova's aggregates and lists of servers know compute services, so a
-- compute service can serve only one reservable host.
create table host (
    id                 bigint      generated always as identity primary key,
    hostname           text        not null constraint host_hostname unique,
    provider           uuid        not null constraint host_provider unique,
    nested             uuid        not null constraint host_nested unique,
    service_name       text        not null constraint host_service_name unique,
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

-- Names of the capabilities of hosts. Lists contain a private property only on request.
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

-- Compute services that must be added to Nova's aggregate "freepool" or removed from it. The row of the host
-- says which of the two; if the host has no row any more, its service is removed.
create table host_pooling (
    service_name text   primary key,
    version      bigint not null default 1 -- increases with every change
);

-- Floating IPs that can be reserved. The network and the subnet of a floating IP can be deleted while this
-- row stays.
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

-- Network segments and devices that leases can reserve. The attributes are those that every resource of its
-- type has.
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

-- Names of the capabilities of network segments and devices. Lists contain a private property only on
-- request.
create table reservable_resource_property (
    id            uuid        primary key,
    resource_type text        not null,
    name          text        not null check (char_length(name) between 1 and 64),
    private       boolean     not null default false,
    created_at    timestamptz not null default clock_timestamp(),
    updated_at    timestamptz,
    constraint reservable_resource_property_name unique (resource_type, name)
);

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
    -- The time until which the batch that has begun the step of the lease must finish the step. After this
    -- time, any process may take the step over.
    batch_until         timestamptz,
    constraint lease_dates check (start_at <= end_at),
    constraint lease_deletion check (status <> 'DELETING' or delete_requested_at is not null)
);
create index lease_project on lease (project_id, created_at);
create index lease_batch on lease (batch_until) where batch_until is not null;
-- The quota of a project counts its leases that have not ended, and must not read the others.
create index lease_not_ended on lease (project_id) where status <> 'TERMINATED';
-- A page of the leases of all projects begins after the last lease of the previous page.
create index lease_order on lease (created_at, id);

-- The reservations of a lease. Columns that concern only some types of resources have their default in the
-- reservations of the other types.
create table reservation (
    id                    uuid        primary key,
    lease_id              uuid        not null references lease on delete cascade,
    position              integer     not null, -- position in the request
    resource_type         text        not null,
    status                text        not null check (status in ('pending', 'active', 'deleted', 'error')),
    min_hosts             integer     not null,
    max_hosts             integer     not null,
    hypervisor_properties text        not null,
    resource_properties   text        not null,
    before_end            text        not null check (before_end in ('', 'default', 'snapshot')),
    missing_resources     boolean     not null default false,
    resources_changed     boolean     not null default false,
    last_error            text        not null default '',
    created_at            timestamptz not null default clock_timestamp(),
    updated_at            timestamptz,
    amount                integer     not null default 0 check (amount >= 0),
    vcpus                 bigint      not null default 0 check (vcpus >= 0),
    memory_mb             bigint      not null default 0 check (memory_mb >= 0),
    disk_gb               bigint      not null default 0 check (disk_gb >= 0),
    affinity              text        not null default '' check (affinity in ('', 'affinity', 'anti-affinity')),
    flavor                jsonb, -- the flavor as it was when the lease was created
    resources             jsonb       not null default '{}', -- amounts that one instance uses of its host, by resource class
    network_id            uuid,
    required_addresses    inet[]      not null default '{}',
    aggregate_id          bigint, -- ID of the aggregate in Nova
    server_group_id       text        not null default '',
    -- A revision, which increases when the resources of an active reservation change; shaped is the revision
    -- that Nova and Neutron have.
    shape                 bigint      not null default 0,
    shaped                bigint      not null default 0,
    network_name          text        not null default '',
    network_description   text        not null default '',
    network_properties    text        not null default '',
    cloud_network_id      text        not null default '', -- ID of the network in Neutron
    constraint reservation_type check (resource_type in
        ('physical:host', 'virtual:instance', 'flavor:instance', 'virtual:floatingip', 'network', 'device')),
    constraint reservation_hosts check ((resource_type in ('physical:host', 'device')) = (min_hosts >= 1)),
    constraint reservation_range check (min_hosts <= max_hosts),
    constraint reservation_instances check ((resource_type in ('virtual:instance', 'flavor:instance')) = (resources <> '{}')),
    constraint reservation_flavor check ((resource_type = 'flavor:instance') = (flavor is not null)),
    constraint reservation_network check ((resource_type = 'virtual:floatingip') = (network_id is not null)),
    constraint reservation_network_name check ((resource_type = 'network') = (network_name <> '')),
    constraint reservation_shaped check (shaped <= shape),
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
-- The future starts and ends of leases by their time, because every start and end queries the leases that are
-- due.
create index event_due on event (at) where status = 'UNDONE' and event_type <> 'before_end_lease';

-- The statuses that reservations and events may have, for each status of a lease. The table is the same as
-- the table in package lease, so that no writer can store a lease whose statuses contradict each other. The
-- status of the event before_end_lease is not checked.
create table lease_combination (
    status       text   primary key,
    reservations text[] not null,
    starts       text[] not null,
    ends         text[] not null
);

-- lease_agrees refuses, at the commit, a lease whose statuses are not in the table. lease_agrees locks the
-- lease first: otherwise each of two writers of different rows of a lease could see the old row of the other
-- writer.
-- +goose StatementBegin
create function lease_agrees() returns trigger language plpgsql as $$
declare
    its uuid;
    is_now text;
begin
    if tg_table_name = 'lease' then
        its := new.id;
    elsif tg_op = 'DELETE' then
        its := old.lease_id;
    else
        its := new.lease_id;
    end if;
    perform from lease where id = its for no key update;
    select format('lease %s is %s, its start %s, its end %s, its reservations %s', l.id, l.status, coalesce(s.status, 'missing'),
            coalesce(e.status, 'missing'), array(select r.status from reservation r where r.lease_id = l.id order by r.position))
    into is_now
    from lease l
    left join lease_combination c on c.status = l.status
    left join event s on s.lease_id = l.id and s.event_type = 'start_lease'
    left join event e on e.lease_id = l.id and e.event_type = 'end_lease'
    where l.id = its and (s.status = any(c.starts) and e.status = any(c.ends)
        and not exists (select from reservation r where r.lease_id = l.id and r.status <> all(c.reservations))) is not true;
    if found then
        raise check_violation using message = is_now, constraint = 'lease_agrees', table = 'lease';
    end if;
    return null;
end
$$;
-- +goose StatementEnd
create constraint trigger lease_made after insert on lease
    deferrable initially deferred for each row execute function lease_agrees();
create constraint trigger lease_agrees after update on lease
    deferrable initially deferred for each row when (old.status <> new.status) execute function lease_agrees();
create constraint trigger reservation_made after insert on reservation
    deferrable initially deferred for each row execute function lease_agrees();
create constraint trigger reservation_agrees after update on reservation
    deferrable initially deferred for each row
    when ((old.status, old.lease_id) <> (new.status, new.lease_id)) execute function lease_agrees();
create constraint trigger event_agrees after update on event
    deferrable initially deferred for each row
    when ((old.status, old.lease_id, old.event_type) <> (new.status, new.lease_id, new.event_type)) execute function lease_agrees();
create constraint trigger event_kept after delete on event
    deferrable initially deferred for each row when (old.event_type <> 'before_end_lease') execute function lease_agrees();

-- A row says which reservation has which host in which half-open time range: a lease may begin at the second
-- at which another lease ends. The row is deleted when the reservation has released the host, which may be
-- later than the end of the lease.
--
-- A reservation of whole hosts is the owner of its allocations, so that no other reservation can have the
-- host at the same time. Allocations of instance reservations have no owner (the zero UUID), so that several
-- of them can share a host.
create table host_allocation (
    reservation_id uuid      not null references reservation on delete cascade,
    host_id        bigint    not null constraint host_allocation_host references host,
    during         tstzrange not null check (not isempty(during)),
    owner          uuid      not null default '00000000-0000-0000-0000-000000000000',
    slots          integer   not null default 1 check (slots >= 1), -- number of instances on the host
    primary key (reservation_id, host_id),
    constraint host_allocation_owner check (owner in (reservation_id, '00000000-0000-0000-0000-000000000000')),
    constraint host_allocation_once exclude using gist (host_id with =, during with &&, owner with <>)
);

-- The amount of a host that instances may use: for virtual:instance the amount that the host has, for
-- flavor:instance the capacity of the provider's inventory.
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

-- A row says which reservation has which floating IP in which time range, as host_allocation does for hosts.
create table floatingip_allocation (
    reservation_id uuid      not null references reservation on delete cascade,
    floatingip_id  uuid      not null constraint floatingip_allocation_address references floatingip,
    during         tstzrange not null check (not isempty(during)),
    primary key (reservation_id, floatingip_id),
    constraint floatingip_allocation_once exclude using gist (floatingip_id with =, during with &&)
);

-- A row says which reservation has which network segment or device in which time range.
create table resource_allocation (
    reservation_id uuid      not null references reservation on delete cascade,
    resource_id    uuid      not null constraint resource_allocation_resource references reservable_resource,
    during         tstzrange not null check (not isempty(during)),
    primary key (reservation_id, resource_id),
    constraint resource_allocation_once exclude using gist (resource_id with =, during with &&)
);

-- The failed call to another service on which a reservation waits. A later call that succeeds deletes the
-- row.
create table reservation_failure (
    reservation_id uuid        primary key references reservation on delete cascade,
    party          text        not null, -- the service
    call           text        not null,
    error          text        not null,
    since          timestamptz not null default clock_timestamp(),
    last_at        timestamptz not null default clock_timestamp(),
    next_at        timestamptz, -- time of the next attempt
    attempts       integer     not null default 1 check (attempts >= 1)
);

-- Reservations of deleted leases that are removed from Nova and Neutron once more, because a call that was
-- running during the deletion can have created an object after the removal.
create table reservation_leftover (
    reservation_id uuid        primary key,
    resource_type  text        not null,
    project_id     text        not null,
    services       text[]      not null,
    due_at         timestamptz not null,
    attempts       integer     not null default 0,
    last_error     text        not null default '',
    created_at     timestamptz not null default clock_timestamp()
);
create index reservation_leftover_due on reservation_leftover (due_at);

-- The notifications about leases that are not delivered yet, in order. A notification stays after its lease
-- is deleted.
create table lease_notification (
    id         bigint      generated always as identity primary key,
    lease_id   uuid        not null,
    message_id uuid        not null,
    kind       text        not null,
    at         timestamptz not null default clock_timestamp(),
    lease      jsonb       not null -- the state of the lease at that time
);
create index lease_notification_lease on lease_notification (lease_id, id);


-- # journalstore: changes that the SDN controller must get

-- The journal of changes that the SDN controller must get. The transaction that changes an object also writes
-- the journal entry. Open entries (pending, processing, failed) block later entries; a completed entry is
-- history. No index contains a column that changes while an entry is processed, so that only the completion
-- of the entry changes the indexes.
create table journal_entry (
    seq           bigint      generated always as identity primary key,
    object_type   text        not null check (object_type <> ''),
    object_id     text        not null check (object_id <> ''),
    operation     text        not null check (operation in ('create', 'update', 'delete')),
    data          jsonb       not null,
    parents       text[]      not null, -- each parent as type/id
    state         text        not null default 'pending' check (state in ('pending', 'processing', 'completed', 'failed')),
    attempt       integer     not null default 0 check (attempt >= 0),  -- an outcome of an older attempt is refused
    failures      integer     not null default 0 check (failures >= 0), -- number of unexpected answers
    maybe_applied boolean     not null default false, -- the controller may have applied an attempt that seems to have failed
    project       text        not null,
    name          text        not null,
    last_error    text        not null default '',
    created_at    timestamptz not null default now(),
    taken_at      timestamptz,
    finished_at   timestamptz,
    looked_at     timestamptz not null default now(), -- time at which an attempt or a sweep has last examined the entry
    retry_at      timestamptz, -- time of the next attempt after an attempt that did not succeed
    -- The last attempt did not reach the controller. The attempt may be repeated as soon as the controller
    -- can be reached, even before retry_at.
    away          boolean     not null default false,
    sent_by       bigint, -- the entry whose workflow made the last attempt at this entry; null: this entry's own workflow
    -- Why the last attempt failed, as a code for decisions of programs; last_error is a sentence for people.
    -- The code is empty if no decision depends on the reason.
    error_code    text        not null default '' check (error_code in ('', 'missing_parent')),
    check ((state = 'completed') = (finished_at is not null)),
    check (state <> 'processing' or (attempt > 0 and taken_at is not null))
) with (fillfactor = 70);
create index journal_entry_live on journal_entry (object_type, object_id, seq) where finished_at is null;
create index journal_entry_children on journal_entry using gin (parents) with (fastupdate = off) where finished_at is null;
create index journal_entry_unfinished on journal_entry (seq) where finished_at is null;
create index journal_entry_history on journal_entry (object_id, seq);

-- A row says that an entry waits for an older entry. The row is deleted when the older entry completes.
create table journal_dep (
    entry     bigint not null references journal_entry on delete cascade,
    waits_for bigint not null references journal_entry on delete cascade,
    primary key (entry, waits_for),
    check (waits_for < entry)
);
create index journal_dep_waits_for on journal_dep (waits_for, entry);

-- The decisions of operators about failed entries.
create table journal_audit (
    id     bigint      generated always as identity primary key,
    seq    bigint      not null references journal_entry on delete cascade,
    action text        not null check (action in ('retry', 'skip', 'recover')),
    actor  text        not null,
    reason text        not null,
    at     timestamptz not null default now()
);
create index journal_audit_seq on journal_audit (seq);

-- A row exists while the journal is paused: then no process sends entries to the controller.
create table journal_pause (
    paused boolean     primary key default true check (paused),
    at     timestamptz not null default clock_timestamp(),
    actor  text        not null,
    reason text        not null
);

-- The decisions of operators to pause and resume the journal.
create table journal_pause_audit (
    id     bigint      primary key generated always as identity,
    at     timestamptz not null default clock_timestamp(),
    actor  text        not null,
    action text        not null check (action in ('pause', 'resume')),
    reason text        not null
);

-- The state of the circuit breaker of a controller. All processes share it, so that together they probe the
-- controller no more often than one process would.
create table mirror_breaker (
    controller text        primary key, -- URL of the controller's northbound API
    open       boolean     not null,
    since      timestamptz not null, -- time of the last change of `open`
    probe_at   timestamptz not null  -- while the breaker is open, no process sends a request before this time
);

-- The state that the controller must have of the objects for which berth has no API. Other services have
-- recorded this state.
create sequence mirror_revision;
create table mirror_object (
    object_type text        not null check (object_type <> ''),
    object_id   text        not null check (object_id <> ''),
    data        jsonb       not null, -- the object as the service has recorded it
    parents     text[]      not null, -- each parent as type/id
    project     text        not null,
    name        text        not null,
    revision    bigint      not null default nextval('mirror_revision'), -- also increases by a deletion
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now(),
    primary key (object_type, object_id)
);
create index mirror_object_parents on mirror_object using gin (parents);


-- # mirrorstore: comparisons of the SDN controller with the rows

-- A run compares the controller with the rows, or makes the controller equal to the rows. At most one run of
-- each kind is open.
create table mirror_run (
    id          bigint      generated always as identity primary key,
    kind        text        not null check (kind in ('full-sync', 'recovery', 'audit', 'repair')),
    -- Only for a repair: the audit whose findings the repair corrects.
    plan        bigint      references mirror_run on delete cascade,
    actor       text        not null,
    reason      text        not null,
    state       text        not null default 'running' check (state in ('running', 'done', 'failed')),
    position    text        not null default '', -- the progress, in a form that depends on the kind of run
    progress    jsonb       not null default '[]', -- numbers by object type, in the order of the run
    note        text        not null default '', -- what the run waits for, or its result
    step        bigint      not null default 0, -- a write with an older step number is refused
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now(),
    finished_at timestamptz,
    check ((state = 'running') = (finished_at is null)),
    check ((kind = 'repair') = (plan is not null))
);
create unique index mirror_run_open on mirror_run (kind) where finished_at is null;

-- The findings of audits.
create table mirror_finding (
    run         bigint not null references mirror_run on delete cascade,
    object_type text   not null,
    object_id   text   not null,
    kind        text   not null check (kind in ('missing', 'extra', 'different')),
    attributes  text[] not null, -- names of the attributes that differ
    data        jsonb  not null, -- the state that the controller must have, or the present state of an extra object
    outcome     text   not null default '', -- the outcome of the repair
    primary key (run, object_type, object_id)
);

-- The entries that a run recorded or sent again.
create table mirror_run_entry (
    run bigint not null references mirror_run on delete cascade,
    seq bigint not null references journal_entry on delete cascade,
    primary key (run, seq)
);
create index mirror_run_entry_seq on mirror_run_entry (seq);


-- # auditstore: the audit log

-- Audit records that the transactions of requests have written, and that are not yet in the chain. The table
-- has no index, so that its rows cost the transactions as little as possible.
create table audit_pending (
    id     bigint generated always as identity,
    record json not null
);

-- The audit log. The hash of a record covers the record and the hash of the previous record, so a later
-- change of a record is visible. The table has no other columns that filters use, because these could differ
-- from the record.
create table audit_record (
    sequence bigint primary key,
    record   json not null,
    hash     bytea not null check (octet_length(hash) = 32)
);
create index audit_record_at on audit_record using brin (((record ->> 'at') collate "C"));
create index audit_record_project on audit_record ((record ->> 'project'), sequence);
create index audit_record_user on audit_record ((record ->> 'user'), sequence);
create index audit_record_object on audit_record ((record ->> 'object_id'), sequence);
create index audit_record_refused on audit_record (sequence) where record ->> 'outcome' <> 'success';

-- The ends of the chain: the newest record, and the newest record that the retention has deleted.
create table audit_chain (
    id              boolean primary key default true check (id),
    sequence        bigint not null,
    hash            bytea not null check (octet_length(hash) = 32),
    anchor_sequence bigint not null,
    anchor_hash     bytea not null check (octet_length(anchor_hash) = 32),
    check (anchor_sequence <= sequence)
);


-- # The rows with which every database begins

insert into schema_support (oldest_program) values (1);

insert into audit_chain (sequence, hash, anchor_sequence, anchor_hash)
values (0, decode(repeat('00', 32), 'hex'), 0, decode(repeat('00', 32), 'hex'));

insert into lease_combination (status, reservations, starts, ends) values
    ('CREATING',    '{pending}',                      '{UNDONE}',            '{UNDONE}'),
    ('PENDING',     '{pending}',                      '{UNDONE}',            '{UNDONE}'),
    ('STARTING',    '{pending,active,error}',         '{IN_PROGRESS}',       '{UNDONE}'),
    ('ACTIVE',      '{active}',                       '{DONE}',              '{UNDONE}'),
    ('TERMINATING', '{active,deleted,error}',         '{DONE,ERROR}',        '{IN_PROGRESS}'),
    ('TERMINATED',  '{deleted}',                      '{DONE}',              '{DONE}'),
    ('ERROR',       '{error}',                        '{DONE,ERROR}',        '{UNDONE,ERROR}'),
    ('DELETING',    '{pending,active,deleted,error}', '{UNDONE,DONE,ERROR}', '{UNDONE,DONE,ERROR}'),
    ('UPDATING',    '{pending,active,deleted,error}', '{UNDONE,DONE,ERROR}', '{UNDONE,DONE,ERROR}');

insert into resource_class (id, name)
select ordinality - 1, name
from regexp_split_to_table(btrim('
VCPU MEMORY_MB DISK_GB PCI_DEVICE SRIOV_NET_VF NUMA_SOCKET NUMA_CORE NUMA_THREAD NUMA_MEMORY_MB IPV4_ADDRESS VGPU
VGPU_DISPLAY_HEAD NET_BW_EGR_KILOBIT_PER_SEC NET_BW_IGR_KILOBIT_PER_SEC PCPU MEM_ENCRYPTION_CONTEXT FPGA PGPU
NET_PACKET_RATE_KILOPACKET_PER_SEC NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC
', e' \n'), '\s+') with ordinality as standard (name, ordinality);

insert into trait (id, name)
select ordinality, name
from regexp_split_to_table(btrim('
COMPUTE_ACCELERATORS COMPUTE_ADDRESS_SPACE_EMULATED COMPUTE_ADDRESS_SPACE_PASSTHROUGH COMPUTE_ARCH_AARCH64
COMPUTE_ARCH_MIPSEL COMPUTE_ARCH_PPC64LE COMPUTE_ARCH_RISCV64 COMPUTE_ARCH_S390X COMPUTE_ARCH_X86_64
COMPUTE_CONFIG_DRIVE_REGENERATION COMPUTE_DEVICE_TAGGING COMPUTE_EPHEMERAL_ENCRYPTION
COMPUTE_EPHEMERAL_ENCRYPTION_LUKS COMPUTE_EPHEMERAL_ENCRYPTION_LUKSV2 COMPUTE_EPHEMERAL_ENCRYPTION_PLAIN
COMPUTE_FIRMWARE_BIOS COMPUTE_FIRMWARE_UEFI COMPUTE_GRAPHICS_MODEL_BOCHS COMPUTE_GRAPHICS_MODEL_CIRRUS
COMPUTE_GRAPHICS_MODEL_GOP COMPUTE_GRAPHICS_MODEL_NONE COMPUTE_GRAPHICS_MODEL_QXL COMPUTE_GRAPHICS_MODEL_VGA
COMPUTE_GRAPHICS_MODEL_VIRTIO COMPUTE_GRAPHICS_MODEL_VMVGA COMPUTE_GRAPHICS_MODEL_XEN COMPUTE_IMAGE_TYPE_AKI
COMPUTE_IMAGE_TYPE_AMI COMPUTE_IMAGE_TYPE_ARI COMPUTE_IMAGE_TYPE_ISO COMPUTE_IMAGE_TYPE_PLOOP
COMPUTE_IMAGE_TYPE_QCOW2 COMPUTE_IMAGE_TYPE_RAW COMPUTE_IMAGE_TYPE_VDI COMPUTE_IMAGE_TYPE_VHD COMPUTE_IMAGE_TYPE_VHDX
COMPUTE_IMAGE_TYPE_VMDK COMPUTE_MANAGED_PCI_DEVICE COMPUTE_MEM_BACKING_FILE COMPUTE_MIGRATE_AUTO_CONVERGE
COMPUTE_MIGRATE_POST_COPY COMPUTE_NET_ATTACH_INTERFACE COMPUTE_NET_ATTACH_INTERFACE_WITH_TAG
COMPUTE_NET_VIF_MODEL_E1000 COMPUTE_NET_VIF_MODEL_E1000E COMPUTE_NET_VIF_MODEL_IGB COMPUTE_NET_VIF_MODEL_LAN9118
COMPUTE_NET_VIF_MODEL_NE2K_PCI COMPUTE_NET_VIF_MODEL_NETFRONT COMPUTE_NET_VIF_MODEL_PCNET
COMPUTE_NET_VIF_MODEL_RTL8139 COMPUTE_NET_VIF_MODEL_SPAPR_VLAN COMPUTE_NET_VIF_MODEL_SRIOV
COMPUTE_NET_VIF_MODEL_VIRTIO COMPUTE_NET_VIF_MODEL_VMXNET COMPUTE_NET_VIF_MODEL_VMXNET3 COMPUTE_NET_VIRTIO_PACKED
COMPUTE_NODE COMPUTE_REMOTE_MANAGED_PORTS COMPUTE_RESCUE_BFV COMPUTE_SAME_HOST_COLD_MIGRATE
COMPUTE_SECURITY_STATELESS_FIRMWARE COMPUTE_SECURITY_TPM_1_2 COMPUTE_SECURITY_TPM_2_0 COMPUTE_SECURITY_TPM_CRB
COMPUTE_SECURITY_TPM_SECRET_SECURITY_DEPLOYMENT COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST
COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER COMPUTE_SECURITY_TPM_TIS COMPUTE_SECURITY_UEFI_SECURE_BOOT
COMPUTE_SHARE_LOCAL_FS COMPUTE_SOCKET_PCI_NUMA_AFFINITY COMPUTE_SOUND_MODEL_AC97 COMPUTE_SOUND_MODEL_ES1370
COMPUTE_SOUND_MODEL_ICH6 COMPUTE_SOUND_MODEL_ICH9 COMPUTE_SOUND_MODEL_PCSPK COMPUTE_SOUND_MODEL_SB16
COMPUTE_SOUND_MODEL_USB COMPUTE_SOUND_MODEL_VIRTIO COMPUTE_STATUS_DISABLED COMPUTE_STORAGE_BUS_FDC
COMPUTE_STORAGE_BUS_IDE COMPUTE_STORAGE_BUS_LXC COMPUTE_STORAGE_BUS_SATA COMPUTE_STORAGE_BUS_SCSI
COMPUTE_STORAGE_BUS_UML COMPUTE_STORAGE_BUS_USB COMPUTE_STORAGE_BUS_VIRTIO COMPUTE_STORAGE_BUS_XEN
COMPUTE_STORAGE_VIRTIO_FS COMPUTE_TRUSTED_CERTS COMPUTE_USB_MODEL_NEC_XHCI COMPUTE_USB_MODEL_QEMU_XHCI
COMPUTE_VIOMMU_MODEL_AUTO COMPUTE_VIOMMU_MODEL_INTEL COMPUTE_VIOMMU_MODEL_SMMUV3 COMPUTE_VIOMMU_MODEL_VIRTIO
COMPUTE_VOLUME_ATTACH COMPUTE_VOLUME_ATTACH_WITH_TAG COMPUTE_VOLUME_EXTEND COMPUTE_VOLUME_MULTI_ATTACH
HW_ARCH_AARCH64 HW_ARCH_ALPHA HW_ARCH_ARMV6 HW_ARCH_ARMV7 HW_ARCH_ARMV7B HW_ARCH_CRIS HW_ARCH_I686 HW_ARCH_IA64
HW_ARCH_LM32 HW_ARCH_M68K HW_ARCH_MICROBLAZE HW_ARCH_MICROBLAZEEL HW_ARCH_MIPS HW_ARCH_MIPS64 HW_ARCH_MIPS64EL
HW_ARCH_MIPSEL HW_ARCH_OPENRISC HW_ARCH_PARISC HW_ARCH_PARISC64 HW_ARCH_PPC HW_ARCH_PPC64 HW_ARCH_PPC64LE
HW_ARCH_PPCEMB HW_ARCH_PPCLE HW_ARCH_S390 HW_ARCH_S390X HW_ARCH_SH4 HW_ARCH_SH4EB HW_ARCH_SPARC HW_ARCH_SPARC64
HW_ARCH_UNICORE32 HW_ARCH_X86_64 HW_ARCH_XTENSA HW_ARCH_XTENSAEB HW_CPU_AARCH64_AES HW_CPU_AARCH64_ASIMD
HW_CPU_AARCH64_ASIMDDP HW_CPU_AARCH64_ASIMDHP HW_CPU_AARCH64_ASIMDRDM HW_CPU_AARCH64_ATOMICS HW_CPU_AARCH64_CPUID
HW_CPU_AARCH64_CRC32 HW_CPU_AARCH64_DCPOP HW_CPU_AARCH64_EVTSTRM HW_CPU_AARCH64_FCMA HW_CPU_AARCH64_FP
HW_CPU_AARCH64_FPHP HW_CPU_AARCH64_JSCVT HW_CPU_AARCH64_LRCPC HW_CPU_AARCH64_PMULL HW_CPU_AARCH64_SHA1
HW_CPU_AARCH64_SHA2 HW_CPU_AARCH64_SHA3 HW_CPU_AARCH64_SHA512 HW_CPU_AARCH64_SM3 HW_CPU_AARCH64_SM4
HW_CPU_AARCH64_SVE HW_CPU_AMD_SEV HW_CPU_HYPERTHREADING HW_CPU_PPC64LE_POWER8 HW_CPU_PPC64LE_POWER9 HW_CPU_X86_3DNOW
HW_CPU_X86_ABM HW_CPU_X86_AESNI HW_CPU_X86_AMD_IBPB HW_CPU_X86_AMD_NO_SSB HW_CPU_X86_AMD_SEV HW_CPU_X86_AMD_SEV_ES
HW_CPU_X86_AMD_SEV_SNP HW_CPU_X86_AMD_SSBD HW_CPU_X86_AMD_SVM HW_CPU_X86_AMD_VIRT_SSBD HW_CPU_X86_AMXBF16
HW_CPU_X86_AMXINT8 HW_CPU_X86_AMXTILE HW_CPU_X86_ASF HW_CPU_X86_AVX HW_CPU_X86_AVX2 HW_CPU_X86_AVX512BITALG
HW_CPU_X86_AVX512BW HW_CPU_X86_AVX512CD HW_CPU_X86_AVX512DQ HW_CPU_X86_AVX512ER HW_CPU_X86_AVX512F
HW_CPU_X86_AVX512GFNI HW_CPU_X86_AVX512IFMA HW_CPU_X86_AVX512PF HW_CPU_X86_AVX512VAES HW_CPU_X86_AVX512VBMI
HW_CPU_X86_AVX512VBMI2 HW_CPU_X86_AVX512VL HW_CPU_X86_AVX512VNNI HW_CPU_X86_AVX512VPCLMULQDQ
HW_CPU_X86_AVX512VPOPCNTDQ HW_CPU_X86_BMI HW_CPU_X86_BMI2 HW_CPU_X86_CLMUL HW_CPU_X86_F16C HW_CPU_X86_FMA3
HW_CPU_X86_FMA4 HW_CPU_X86_INTEL_MD_CLEAR HW_CPU_X86_INTEL_PCID HW_CPU_X86_INTEL_SPEC_CTRL HW_CPU_X86_INTEL_SSBD
HW_CPU_X86_INTEL_TDX HW_CPU_X86_INTEL_VMX HW_CPU_X86_MMX HW_CPU_X86_MPX HW_CPU_X86_PDPE1GB HW_CPU_X86_SGX
HW_CPU_X86_SHA HW_CPU_X86_SSE HW_CPU_X86_SSE2 HW_CPU_X86_SSE3 HW_CPU_X86_SSE41 HW_CPU_X86_SSE42 HW_CPU_X86_SSE4A
HW_CPU_X86_SSSE3 HW_CPU_X86_STIBP HW_CPU_X86_SVM HW_CPU_X86_TBM HW_CPU_X86_TSX HW_CPU_X86_VMX HW_CPU_X86_XOP
HW_GPU_API_DIRECT2D HW_GPU_API_DIRECT3D_V10_0 HW_GPU_API_DIRECT3D_V10_1 HW_GPU_API_DIRECT3D_V11_0
HW_GPU_API_DIRECT3D_V11_1 HW_GPU_API_DIRECT3D_V11_2 HW_GPU_API_DIRECT3D_V11_3 HW_GPU_API_DIRECT3D_V12_0
HW_GPU_API_DIRECT3D_V6_0 HW_GPU_API_DIRECT3D_V7_0 HW_GPU_API_DIRECT3D_V8_0 HW_GPU_API_DIRECT3D_V8_1
HW_GPU_API_DIRECT3D_V9_0 HW_GPU_API_DIRECT3D_V9_0B HW_GPU_API_DIRECT3D_V9_0C HW_GPU_API_DIRECT3D_V9_0L
HW_GPU_API_DIRECTX_V10 HW_GPU_API_DIRECTX_V11 HW_GPU_API_DIRECTX_V12 HW_GPU_API_DXVA HW_GPU_API_OPENCL_V1_0
HW_GPU_API_OPENCL_V1_1 HW_GPU_API_OPENCL_V1_2 HW_GPU_API_OPENCL_V2_0 HW_GPU_API_OPENCL_V2_1 HW_GPU_API_OPENCL_V2_2
HW_GPU_API_OPENGL_V1_1 HW_GPU_API_OPENGL_V1_2 HW_GPU_API_OPENGL_V1_3 HW_GPU_API_OPENGL_V1_4 HW_GPU_API_OPENGL_V1_5
HW_GPU_API_OPENGL_V2_0 HW_GPU_API_OPENGL_V2_1 HW_GPU_API_OPENGL_V3_0 HW_GPU_API_OPENGL_V3_1 HW_GPU_API_OPENGL_V3_2
HW_GPU_API_OPENGL_V3_3 HW_GPU_API_OPENGL_V4_0 HW_GPU_API_OPENGL_V4_1 HW_GPU_API_OPENGL_V4_2 HW_GPU_API_OPENGL_V4_3
HW_GPU_API_OPENGL_V4_4 HW_GPU_API_OPENGL_V4_5 HW_GPU_API_VULKAN HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_0
HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_1 HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_2 HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_3
HW_GPU_CUDA_COMPUTE_CAPABILITY_V2_0 HW_GPU_CUDA_COMPUTE_CAPABILITY_V2_1 HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_0
HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_2 HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_5 HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_7
HW_GPU_CUDA_COMPUTE_CAPABILITY_V5_0 HW_GPU_CUDA_COMPUTE_CAPABILITY_V5_2 HW_GPU_CUDA_COMPUTE_CAPABILITY_V5_3
HW_GPU_CUDA_COMPUTE_CAPABILITY_V6_0 HW_GPU_CUDA_COMPUTE_CAPABILITY_V6_1 HW_GPU_CUDA_COMPUTE_CAPABILITY_V6_2
HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_0 HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_1 HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_2
HW_GPU_CUDA_SDK_V10_0 HW_GPU_CUDA_SDK_V6_5 HW_GPU_CUDA_SDK_V7_5 HW_GPU_CUDA_SDK_V8_0 HW_GPU_CUDA_SDK_V9_0
HW_GPU_CUDA_SDK_V9_1 HW_GPU_CUDA_SDK_V9_2 HW_GPU_MAX_DISPLAY_HEADS_1 HW_GPU_MAX_DISPLAY_HEADS_2
HW_GPU_MAX_DISPLAY_HEADS_4 HW_GPU_MAX_DISPLAY_HEADS_6 HW_GPU_MAX_DISPLAY_HEADS_8 HW_GPU_RESOLUTION_W1024H600
HW_GPU_RESOLUTION_W1024H768 HW_GPU_RESOLUTION_W1152H864 HW_GPU_RESOLUTION_W1280H1024 HW_GPU_RESOLUTION_W1280H720
HW_GPU_RESOLUTION_W1280H768 HW_GPU_RESOLUTION_W1280H800 HW_GPU_RESOLUTION_W1360H768 HW_GPU_RESOLUTION_W1366H768
HW_GPU_RESOLUTION_W1440H900 HW_GPU_RESOLUTION_W1600H1200 HW_GPU_RESOLUTION_W1600H900 HW_GPU_RESOLUTION_W1680H1050
HW_GPU_RESOLUTION_W1920H1080 HW_GPU_RESOLUTION_W1920H1200 HW_GPU_RESOLUTION_W2560H1440 HW_GPU_RESOLUTION_W2560H1600
HW_GPU_RESOLUTION_W320H240 HW_GPU_RESOLUTION_W3840H2160 HW_GPU_RESOLUTION_W640H480 HW_GPU_RESOLUTION_W7680H4320
HW_GPU_RESOLUTION_W800H600 HW_NIC_ACCEL_DEFLATE HW_NIC_ACCEL_DIFFIEH HW_NIC_ACCEL_ECC HW_NIC_ACCEL_IPSEC
HW_NIC_ACCEL_LZS HW_NIC_ACCEL_RSA HW_NIC_ACCEL_SSL HW_NIC_ACCEL_TLS HW_NIC_DCB_ETS HW_NIC_DCB_PFC HW_NIC_DCB_QCN
HW_NIC_MULTIQUEUE HW_NIC_OFFLOAD_FDF HW_NIC_OFFLOAD_GENEVE HW_NIC_OFFLOAD_GRE HW_NIC_OFFLOAD_GRO HW_NIC_OFFLOAD_GSO
HW_NIC_OFFLOAD_L2CRC HW_NIC_OFFLOAD_LRO HW_NIC_OFFLOAD_LSO HW_NIC_OFFLOAD_QINQ HW_NIC_OFFLOAD_RDMA HW_NIC_OFFLOAD_RX
HW_NIC_OFFLOAD_RXHASH HW_NIC_OFFLOAD_RXVLAN HW_NIC_OFFLOAD_SCS HW_NIC_OFFLOAD_SG HW_NIC_OFFLOAD_SWITCHDEV
HW_NIC_OFFLOAD_TCS HW_NIC_OFFLOAD_TSO HW_NIC_OFFLOAD_TX HW_NIC_OFFLOAD_TXUDP HW_NIC_OFFLOAD_TXVLAN HW_NIC_OFFLOAD_UCS
HW_NIC_OFFLOAD_UFO HW_NIC_OFFLOAD_VXLAN HW_NIC_PROGRAMMABLE_PIPELINE HW_NIC_SRIOV HW_NIC_SRIOV_MULTIQUEUE
HW_NIC_SRIOV_QOS_RX HW_NIC_SRIOV_QOS_TX HW_NIC_SRIOV_TRUSTED HW_NIC_VMDQ HW_NUMA_ROOT HW_NVME_BES HW_NVME_CES
HW_NVME_WZS HW_PCI_LIVE_MIGRATABLE HW_PCI_ONE_TIME_USE MISC_SHARES_VIA_AGGREGATE OWNER_CYBORG OWNER_NOVA
STORAGE_DISK_HDD STORAGE_DISK_SSD
', e' \n'), '\s+') with ordinality as standard (name, ordinality);
