-- +goose Up
-- true: start the workflow again even if it has completed, because its row is open.
alter table note add column restart boolean not null default false;
-- +goose Down
alter table note drop column restart;
