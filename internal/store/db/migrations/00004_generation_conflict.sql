-- +goose Up
-- How many writes all processes have refused because another writer had changed the generation of a provider
-- or a consumer first, by hour (in which the last of the writes was refused). A process counts in memory and
-- adds its counts to the rows every few seconds. There are no foreign keys, as in generation_change.
create table generation_conflict (
    hour        timestamptz not null,
    object_type text not null check (object_type in ('provider', 'consumer')),
    object_id   text collate "C" not null,
    cause       text not null, -- kind of the refused write
    writes      bigint not null check (writes > 0),
    last_at     timestamptz not null,
    primary key (hour, object_type, object_id, cause)
);
