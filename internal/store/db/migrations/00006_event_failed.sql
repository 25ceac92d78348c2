-- +goose Up
-- The lists of hosts and the metrics read the leases whose end has failed.
create index event_failed on event (lease_id) where event_type = 'end_lease' and status = 'ERROR';
