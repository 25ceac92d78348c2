-- +goose Up
-- Which Temporal namespace runs the workflows of these rows. Another one knows none of them.
create table temporal_namespace (
    single     boolean primary key default true check (single),
    id         text        not null,
    adopted_at timestamptz not null default now()
);
-- +goose Down
drop table temporal_namespace;
