-- +goose Up
-- The last attempt met no controller: it may be repeated as soon as there is one, whatever retry_at says.
alter table journal_entry add column away boolean not null default false;
-- +goose Down
alter table journal_entry drop column away;
