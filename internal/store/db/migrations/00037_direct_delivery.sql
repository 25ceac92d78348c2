-- +goose Up
-- Until this time, one process delivers the row without Temporal, and no other process delivers the row.
alter table nova_event add column claimed_until timestamptz;
alter table announcement add column claimed_until timestamptz;
-- +goose Down
alter table announcement drop column claimed_until;
alter table nova_event drop column claimed_until;
