-- +goose Up
-- Healing replaces failed hosts. A host is silent if its hypervisor is enabled and Nova does not hear from it. It
-- does not fail while too many are silent together: it is not reservable, and stays in its leases. silent_at is the
-- time of the last reading, if it has shown the host as silent. silent_readings counts such readings in a row; a
-- host with 1 or more fails. A reading in which too many are silent together sets a negative number, so that
-- further readings are necessary.
alter table host add column silent_at timestamptz;
alter table host add column silent_readings integer not null default 0;
alter table host add column failed boolean not null default false;
update host set failed = true where not reservable;
