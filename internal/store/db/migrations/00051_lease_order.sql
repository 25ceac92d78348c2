-- +goose Up
-- A page of the leases of all projects begins after the last lease of the previous page.
create index lease_order on lease (created_at, id);
-- +goose Down
drop index lease_order;
