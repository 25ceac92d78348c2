-- +goose Up
alter table note add column seen jsonb; -- what the workflow's first look would find, unless another nudge joins the note
-- +goose Down
alter table note drop column seen;
