-- +goose Up
-- The next replay of the notifications that silent agents may have missed; no row: no agent needs a replay.
create table notification_replay (
    single boolean     primary key default true check (single),
    since  timestamptz not null, -- the replay repeats what was sent since then
    due_at timestamptz not null
);
