-- +goose Up
-- Hosts of which the cloud has still to hear that they can be leased, or that they cannot any more: the host's row says
-- which. It outlives that row.
create table host_pooling (
    service_name text   primary key,
    version      bigint not null default 1 -- grows with every change
);
-- +goose Down
drop table host_pooling;
