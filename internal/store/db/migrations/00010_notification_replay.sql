-- +goose Up
-- The requests of silent agents for a replay of the notifications that they may have missed. One replay serves
-- all requests, and deletes them.
create table notification_replay (
    id     bigint      generated always as identity primary key,
    since  timestamptz not null, -- the replay repeats what was sent since then
    due_at timestamptz not null
);
