-- +goose Up
-- The state that the controller must have of the objects for which berth has no API. Other services have recorded this state.
create sequence mirror_revision;
create table mirror_object (
    object_type  text        not null check (object_type <> ''),
    object_id    text        not null check (object_id <> ''),
    data         jsonb       not null, -- the object as the service has recorded it
    parents      text[]      not null, -- each parent as type/id
    project      text        not null,
    name         text        not null,
    revision     bigint      not null default nextval('mirror_revision'), -- also increases by a deletion
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    primary key (object_type, object_id)
);
create index mirror_object_parents on mirror_object using gin (parents);

alter table journal_entry add column retry_at timestamptz; -- time of the next attempt after an attempt that did not succeed
-- +goose Down
alter table journal_entry drop column retry_at;
drop table mirror_object;
drop sequence mirror_revision;
