-- +goose Up
-- An index of the future starts and ends of leases by their time, because every start and end queries the leases that are due.
create index event_due on event (at) where status = 'UNDONE' and event_type <> 'before_end_lease';
-- +goose Down
drop index event_due;
