-- +goose Up
-- The time at which the notification was sent. Sent notifications are kept
-- for a while, because RabbitMQ may lose a message that it has accepted.
alter table announcement add column told_at timestamptz;
drop index announcement_network;
create index announcement_network on announcement (network_id, id) where told_at is null;
create index announcement_told on announcement (told_at) where told_at is not null;
-- The MAC that distributed routers use on a host.
create table router_mac (
    host text    primary key,
    mac  macaddr not null unique
);
-- +goose Down
drop table router_mac;
delete from announcement where told_at is not null;
drop index announcement_told;
drop index announcement_network;
create index announcement_network on announcement (network_id, id);
alter table announcement drop column told_at;
