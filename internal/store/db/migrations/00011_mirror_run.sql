-- +goose Up
-- A run compares the controller with the rows, or makes the controller equal to the rows. At most one run of each kind is open.
create table mirror_run (
    id           bigint      generated always as identity primary key,
    kind         text        not null check (kind in ('full-sync', 'recovery', 'audit', 'repair')),
    plan         bigint      references mirror_run on delete cascade, -- only for a repair: the audit whose findings the repair corrects
    actor        text        not null,
    reason       text        not null,
    state        text        not null default 'running' check (state in ('running', 'done', 'failed')),
    position     text        not null default '', -- the progress, in a form that depends on the kind of run
    progress     jsonb       not null default '[]', -- numbers by object type, in the order of the run
    note         text        not null default '', -- what the run waits for, or its result
    step         bigint      not null default 0, -- a write with an older step number is refused
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    finished_at  timestamptz,
    check ((state = 'running') = (finished_at is null)),
    check ((kind = 'repair') = (plan is not null))
);
create unique index mirror_run_open on mirror_run (kind) where finished_at is null;

-- The findings of audits.
create table mirror_finding (
    run          bigint not null references mirror_run on delete cascade,
    object_type  text   not null,
    object_id    text   not null,
    kind         text   not null check (kind in ('missing', 'extra', 'different')),
    attributes   text[] not null, -- names of the attributes that differ
    data         jsonb  not null, -- the state that the controller must have, or the present state of an extra object
    outcome      text   not null default '', -- the outcome of the repair
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
