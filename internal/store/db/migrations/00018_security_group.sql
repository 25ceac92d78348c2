-- +goose Up
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

alter table port add column security_groups uuid[] not null default '{}';

-- The quotas of projects that differ from the configured default quotas.
create table quota (
    project  text   not null,
    resource text   not null,
    amount   bigint not null check (amount >= -1), -- -1: any number
    primary key (project, resource)
);
create index subnet_project on subnet (project);
-- +goose Down
drop index subnet_project;
drop table quota;
alter table port drop column security_groups;
drop table security_group_rule, security_group;
