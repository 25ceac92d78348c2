-- +goose Up
-- Compute services that must be added to Nova's aggregate "freepool" or removed from it. The row
-- of the host says which of the two; if the host has no row any more, its service is removed.
create table host_pooling (
    service_name text   primary key,
    version      bigint not null default 1 -- increases with every change
);
-- +goose Down
drop table host_pooling;
