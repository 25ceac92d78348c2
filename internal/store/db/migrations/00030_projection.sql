-- +goose Up
-- The result of the last comparison of a projection (Temporal's executions, search attributes) with the rows.
create table projection (
    name         text        primary key,
    compared_at  timestamptz not null,
    compared     bigint      not null,
    unattended   bigint      not null default 0,
    orphans      bigint      not null default 0,
    different    bigint      not null default 0,
    examples     text[]      not null default '{}'
);
-- The name of the bound namespace: berth creates a missing namespace again only if the database was bound to it.
alter table temporal_namespace add column name text not null default '';
-- +goose Down
alter table temporal_namespace drop column name;
drop table projection;
