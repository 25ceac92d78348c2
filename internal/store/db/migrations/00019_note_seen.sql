-- +goose Up
alter table note add column seen jsonb; -- what the new workflow would read first; not used after another nudge was merged into the note
-- +goose Down
alter table note drop column seen;
