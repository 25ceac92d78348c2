-- +goose Up
-- A run compares the controller with the rows, or brings both together. At most one of a kind is open.
create table mirror_run (
    id           bigint      generated always as identity primary key,
    kind         text        not null check (kind in ('full-sync', 'recovery', 'audit', 'repair')),
    plan         bigint      references mirror_run on delete cascade, -- of a repair: the audit whose findings it mends
    actor        text        not null,
    reason       text        not null,
    state        text        not null default 'running' check (state in ('running', 'done', 'failed')),
    position     text        not null default '', -- how far it is, in the words of its kind
    progress     jsonb       not null default '[]', -- by type, in the order of the run
    note         text        not null default '', -- what it waits for, or what came of it
    step         bigint      not null default 0, -- fences the steps
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    finished_at  timestamptz,
    check ((state = 'running') = (finished_at is null)),
    check ((kind = 'repair') = (plan is not null))
);
create unique index mirror_run_open on mirror_run (kind) where finished_at is null;

-- What an audit found.
create table mirror_finding (
    run          bigint not null references mirror_run on delete cascade,
    object_type  text   not null,
    object_id    text   not null,
    kind         text   not null check (kind in ('missing', 'extra', 'different')),
    attributes   text[] not null, -- those that differ
    data         jsonb  not null, -- what the controller shall have, or has of an extra object
    outcome      text   not null default '', -- of its repair
    primary key (run, object_type, object_id)
);

-- The entries that a run recorded or sent again.
create table mirror_run_entry (
    run  bigint not null references mirror_run on delete cascade,
    seq  bigint not null references journal_entry on delete cascade,
    primary key (run, seq)
);
create index mirror_run_entry_seq on mirror_run_entry (seq);

alter table journal_audit drop constraint journal_audit_action_check;
alter table journal_audit add check (action in ('retry', 'skip', 'recover'));
-- +goose Down
alter table journal_audit drop constraint journal_audit_action_check;
alter table journal_audit add check (action in ('retry', 'skip')) not valid;
drop table mirror_run_entry, mirror_finding, mirror_run;
