-- +goose Up
alter table note
    -- 0 urgent, 1 normal, 2 bulk: a relay claims urgent notes first.
    add column priority     smallint not null default 1 check (priority between 0 and 2),
    -- How many times Temporal has refused this note for a reason that concerns only this note.
    add column refusals     integer  not null default 0,
    -- When the note was set aside, because Temporal refused it too often: null for all other notes.
    add column set_aside_at timestamptz;
drop index note_due;
create index note_claim on note (priority, due_at);
-- +goose Down
drop index note_claim;
create index note_due on note (due_at);
alter table note drop column priority, drop column refusals, drop column set_aside_at;
