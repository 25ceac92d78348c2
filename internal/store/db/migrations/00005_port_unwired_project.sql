-- +goose Up
-- The console reads the first ports of a project that are not ACTIVE although they have no block.
create index port_unwired_project on port (project, id)
    where not admin_up or vif in ('unbound', 'binding_failed', 'distributed');
