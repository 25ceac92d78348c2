-- +goose Up
-- The console reads the first ports of a project in the order of their IDs.
create index port_project_order on port (project, id);
drop index port_project;
