-- +goose Up
alter table network add column tags text[] not null default '{}';
alter table subnet add column tags text[] not null default '{}';
alter table port
    add column tags          text[] not null default '{}',
    add column address_pairs jsonb  not null default '[]', -- [{"ip": …, "mac": …}]
    add column dhcp_options  jsonb  not null default '[]'; -- [{"opt_name": …, "opt_value": …, "ip_version": …}]

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
-- +goose Down
drop table subport, trunk;
alter table port drop column tags, drop column address_pairs, drop column dhcp_options;
alter table subnet drop column tags;
alter table network drop column tags;
