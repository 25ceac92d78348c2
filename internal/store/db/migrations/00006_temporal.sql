-- +goose Up
-- The ID of the Temporal namespace that runs the workflows of these rows. Another namespace has none of these workflows.
create table temporal_namespace (
    single     boolean primary key default true check (single),
    id         text        not null,
    adopted_at timestamptz not null default now()
);
-- +goose Down
drop table temporal_namespace;
