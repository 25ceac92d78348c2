-- +goose Up
-- How the processes of this database authenticate callers (BERTH_AUTH). A process with another setting refuses to start: one process without
-- authentication would accept what all the others refuse.
create table authentication (
    single boolean primary key default true check (single),
    mode   text        not null check (mode in ('noauth', 'keystone')),
    set_at timestamptz not null default now()
);
-- +goose Down
drop table authentication;
