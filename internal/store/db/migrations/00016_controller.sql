-- +goose Up
-- What a controller that wires the port says to whoever plugs into it; null if no controller does.
alter table port
    add column vif_details jsonb,
    add constraint port_wired check (vif_details is null or vif not in ('unbound', 'binding_failed', 'distributed'));
-- +goose Down
alter table port drop column vif_details;
