-- +goose Up
-- The device owners of the ports that get addresses from the subnet; empty: every port.
alter table subnet add column service_types text[] not null default '{}';
-- +goose Down
alter table subnet drop column service_types;
