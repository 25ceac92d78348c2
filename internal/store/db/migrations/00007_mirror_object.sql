-- +goose Up
-- What the controller shall have of the objects that berth has no API for, as other services recorded it.
create sequence mirror_revision;
create table mirror_object (
    object_type  text        not null check (object_type <> ''),
    object_id    text        not null check (object_id <> ''),
    data         jsonb       not null, -- as the controller is shown it, unfiltered
    parents      text[]      not null, -- each as type/id
    project      text        not null,
    name         text        not null,
    revision     bigint      not null default nextval('mirror_revision'), -- grows through a deletion too
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    primary key (object_type, object_id)
);
create index mirror_object_parents on mirror_object using gin (parents);

alter table journal_entry add column retry_at timestamptz; -- not before, after an attempt that did not succeed
-- +goose Down
alter table journal_entry drop column retry_at;
drop table mirror_object;
drop sequence mirror_revision;
