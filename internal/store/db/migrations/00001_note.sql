-- +goose Up
-- A note says "this workflow should run and look again". It is written in the transaction of the fact,
-- claimed by a relay for a while, and deleted once Temporal has it. One row per workflow: nudges join.
create table note (
    workflow_id  text primary key,
    workflow     text        not null,
    fresh        boolean     not null, -- nothing of this ID can be running: an eager start will do
    summary      text        not null,
    attributes   jsonb       not null,
    version      bigint      not null default 1,
    attempts     integer     not null default 0,
    due_at       timestamptz not null, -- claimable from then on; a claim moves it to the claim's end
    created_at   timestamptz not null default now(),
    last_error   text        not null default ''
);
create index note_due on note (due_at);
-- +goose Down
drop table note;
