-- +goose Up
-- The Neutron ID of the network that was created for a reservation of a deleted lease. The project can change
-- everything else by which the repeated removal could find the network.
alter table reservation_leftover add column cloud_network_id text not null default '';
