-- +goose Up
-- vif_details contains the VIF details that the controller gives to Nova; null if no controller wires the port.
alter table port
    add column vif_details jsonb,
    add constraint port_wired check (vif_details is null or vif not in ('unbound', 'binding_failed', 'distributed'));
-- +goose Down
alter table port drop column vif_details;
