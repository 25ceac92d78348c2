-- +goose Up
-- A RabbitMQ virtual host that only the agents of one host use: a message in it proves that its sender is this host.
create table agent_virtual_host (
    id          uuid primary key default gen_random_uuid(),
    host        text not null unique check (host <> '' and octet_length(host) <= 255),
    name        text not null unique check (name <> '' and octet_length(name) <= 255),
    agent_types text[] not null default '{}', -- types of agents that the host may report; empty: all types
    created_at  timestamptz not null default clock_timestamp()
);
-- +goose Down
drop table agent_virtual_host;
