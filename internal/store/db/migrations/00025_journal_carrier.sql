-- +goose Up
-- The entry whose workflow made the last attempt at this one; null: it has one of its own.
alter table journal_entry add column carrier bigint;
-- +goose Down
alter table journal_entry drop column carrier;
