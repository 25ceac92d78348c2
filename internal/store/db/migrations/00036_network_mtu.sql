-- +goose Up
-- An MTU below 68 bytes is allowed as long as the network has no subnet.
alter table network drop constraint network_mtu_check, add constraint network_mtu_check check (mtu between 1 and 65535);
-- +goose Down
alter table network drop constraint network_mtu_check, add constraint network_mtu_check check (mtu between 68 and 65535) not valid;
