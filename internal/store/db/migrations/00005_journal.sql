-- +goose Up
-- The journal of changes that the SDN controller must get. The transaction that changes an object also writes the journal
-- entry. Open entries (pending, processing, failed) block later entries; a completed entry is history. No index contains
-- a column that changes while an entry is processed, so that only the completion of the entry changes the indexes.
create table journal_entry (
    seq          bigint      generated always as identity primary key,
    object_type  text        not null check (object_type <> ''),
    object_id    text        not null check (object_id <> ''),
    operation    text        not null check (operation in ('create', 'update', 'delete')),
    data         jsonb       not null,
    parents      text[]      not null, -- each parent as type/id
    state        text        not null default 'pending' check (state in ('pending', 'processing', 'completed', 'failed')),
    attempt      integer     not null default 0 check (attempt >= 0),  -- an outcome of an older attempt is refused
    failures     integer     not null default 0 check (failures >= 0), -- number of unexpected answers
    unsure       boolean     not null default false, -- the controller may have applied an attempt that seems to have failed
    project      text        not null,
    name         text        not null,
    last_error   text        not null default '',
    created_at   timestamptz not null default now(),
    taken_at     timestamptz,
    finished_at  timestamptz,
    looked_at    timestamptz not null default now(), -- time at which an attempt or a sweep has last examined the entry
    check ((state = 'completed') = (finished_at is not null)),
    check (state <> 'processing' or (attempt > 0 and taken_at is not null))
) with (fillfactor = 70);
create index journal_entry_live on journal_entry (object_type, object_id, seq) where finished_at is null;
create index journal_entry_children on journal_entry using gin (parents) with (fastupdate = off) where finished_at is null;
create index journal_entry_unfinished on journal_entry (seq) where finished_at is null;
create index journal_entry_history on journal_entry (object_id, seq);

-- A row says that an entry waits for an older entry. The row is deleted when the older entry completes.
create table journal_dep (
    entry      bigint not null references journal_entry on delete cascade,
    waits_for  bigint not null references journal_entry on delete cascade,
    primary key (entry, waits_for),
    check (waits_for < entry)
);
create index journal_dep_waits_for on journal_dep (waits_for, entry);

-- The decisions of operators about failed entries.
create table journal_audit (
    id      bigint      generated always as identity primary key,
    seq     bigint      not null references journal_entry on delete cascade,
    action  text        not null check (action in ('retry', 'skip')),
    actor   text        not null,
    reason  text        not null,
    at      timestamptz not null default now()
);
create index journal_audit_seq on journal_audit (seq);
-- +goose Down
drop table journal_audit;
drop table journal_dep;
drop table journal_entry;
