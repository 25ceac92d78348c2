-- +goose Up
-- away is true if the last attempt did not reach the controller. The attempt may
-- be repeated as soon as the controller can be reached, even before retry_at.
alter table journal_entry add column away boolean not null default false;
-- +goose Down
alter table journal_entry drop column away;
