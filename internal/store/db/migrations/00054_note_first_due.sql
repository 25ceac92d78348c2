-- +goose Up
-- The time since which a note is due. Every attempt to deliver the note moves due_at to the time of the next attempt, but not first_due_at.
alter table note
    add column first_due_at timestamptz;
-- +goose Down
alter table note
    drop column first_due_at;
