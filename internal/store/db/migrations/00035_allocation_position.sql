-- +goose Up
-- The place of an allocation among the allocations of its consumer, in the order in which the client has written them.
alter table allocation add column position integer not null default 0;
-- +goose Down
alter table allocation drop column position;
