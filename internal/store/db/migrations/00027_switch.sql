-- +goose Up
-- What the Open vSwitch that wires a port has otherwise than usual; null for nothing.
alter table port add column switch jsonb;
alter table port_binding add column switch jsonb;
-- +goose Down
alter table port_binding drop column switch;
alter table port drop column switch;
