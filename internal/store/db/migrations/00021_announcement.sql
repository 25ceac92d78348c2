-- +goose Up
-- What agents shall be told over RabbitMQ, in order within a network, until they were. It outlives what it is about.
create table announcement (
    id         bigint generated always as identity primary key,
    network_id uuid        not null, -- the ID of nothing for what belongs to no network
    kind       text        not null,
    event      text        not null,
    object_id  uuid        not null,
    data       jsonb       not null,
    at         timestamptz not null default clock_timestamp()
);
create index announcement_network on announcement (network_id, id);
-- +goose Down
drop table announcement;
