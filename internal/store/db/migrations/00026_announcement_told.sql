-- +goose Up
-- What agents were told is kept for a while, because a broker may lose what it has taken.
alter table announcement add column told_at timestamptz;
drop index announcement_network;
create index announcement_network on announcement (network_id, id) where told_at is null;
create index announcement_told on announcement (told_at) where told_at is not null;
-- The MAC of each host where routers are distributed.
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
