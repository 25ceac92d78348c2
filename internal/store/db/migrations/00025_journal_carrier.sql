-- +goose Up
-- The number of the entry whose workflow made the last attempt at this entry; null: this entry's own workflow made the attempt.
alter table journal_entry add column carrier bigint;
-- +goose Down
alter table journal_entry drop column carrier;
