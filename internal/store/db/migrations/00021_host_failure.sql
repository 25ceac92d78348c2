-- +goose Up
-- Healing replaces failed hosts. A host whose hypervisor is down does not fail while too many are down together: it
-- is not reservable, and stays in its leases. down_seen_at is the time of the last reading, if it has shown the
-- hypervisor as down. down_readings counts such readings in a row; a host with 1 or more has failed. A reading in
-- which too many are down together sets a negative number, so that further readings are necessary.
alter table host add column down_seen_at timestamptz;
alter table host add column down_readings integer not null default 0;
alter table host add column failed boolean not null default false;
update host set failed = true where not reservable;
