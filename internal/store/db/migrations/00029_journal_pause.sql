-- +goose Up
-- A row exists while the journal is paused: then no process sends entries to the controller.
create table journal_pause (
    paused  boolean     primary key default true check (paused),
    at      timestamptz not null default clock_timestamp(),
    actor   text        not null,
    reason  text        not null
);
create table journal_pause_audit (
    id      bigint      primary key generated always as identity,
    at      timestamptz not null default clock_timestamp(),
    actor   text        not null,
    action  text        not null check (action in ('pause', 'resume')),
    reason  text        not null
);
-- +goose Down
drop table journal_pause_audit;
drop table journal_pause;
