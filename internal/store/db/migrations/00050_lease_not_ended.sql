-- +goose Up
-- The quota of a project counts its leases that have not ended, and must not read the others.
create index lease_not_ended on lease (project_id) where status <> 'TERMINATED';
-- +goose Down
drop index lease_not_ended;
