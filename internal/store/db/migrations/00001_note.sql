-- +goose Up
-- A note says that a workflow should run and read its row again. A transaction that changes a row
-- also writes the note. A relay claims the note for a while, delivers it to Temporal, and then
-- deletes it. Each workflow has at most one note: a further nudge is merged into the existing note.
create table note (
    workflow_id  text primary key,
    workflow     text        not null,
    fresh        boolean     not null, -- true: no workflow with this ID can be running
    summary      text        not null,
    attributes   jsonb       not null,
    version      bigint      not null default 1,
    attempts     integer     not null default 0,
    due_at       timestamptz not null, -- a relay may claim the note from this time on; a claim sets it to the end of the claim
    created_at   timestamptz not null default now(),
    last_error   text        not null default ''
);
create index note_due on note (due_at);
-- +goose Down
drop table note;
