-- +goose Up
-- The configuration of the Open vSwitch that wires the port; null: the default configuration.
alter table port add column switch jsonb;
alter table port_binding add column switch jsonb;
-- +goose Down
alter table port_binding drop column switch;
alter table port drop column switch;
