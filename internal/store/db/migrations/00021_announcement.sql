-- +goose Up
-- The notifications for agents that are not sent over RabbitMQ yet, in
-- order for each network. A notification stays after its object is deleted.
create table announcement (
    id         bigint generated always as identity primary key,
    network_id uuid        not null, -- the zero UUID if the object belongs to no network
    kind       text        not null,
    event      text        not null,
    object_id  uuid        not null,
    data       jsonb       not null,
    at         timestamptz not null default clock_timestamp()
);
create index announcement_network on announcement (network_id, id);
-- +goose Down
drop table announcement;
