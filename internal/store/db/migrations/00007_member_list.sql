-- +goose Up
-- The lists of a project's member have the networks that all projects see, and the ports on the networks of
-- the project.
create index network_shared on network (id) where shared or external;
create index port_network_order on port (network_id, id);
