-- +goose Up
-- The Neutron IDs of the floating IPs that were created for a reservation. The project can change everything
-- else by which the end of the lease could find the floating IPs.
alter table reservation add column floating_ip_ids text[] not null default '{}';

alter table reservation_leftover add column floating_ip_ids text[] not null default '{}';
