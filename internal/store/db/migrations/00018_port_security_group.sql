-- +goose Up
-- Whether a port uses a security group, and the members of a security group. Without fastupdate, no write and no
-- read of a port has to merge the pending entries of others.
create index port_security_group on port using gin (security_groups) with (fastupdate = off);
