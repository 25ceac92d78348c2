-- +goose Up
-- The starts and ends that lie ahead, by their time: those that are due are asked for at every one of them.
create index event_due on event (at) where status = 'UNDONE' and event_type <> 'before_end_lease';
-- +goose Down
drop index event_due;
