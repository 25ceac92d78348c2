-- +goose Up
-- The availability zone that a networking agent reports, and the zones whose DHCP agents may serve
-- a network. If the value is empty, the agent reports no zone, or every zone may serve the network.
alter table agent add column availability_zone text not null default '';
alter table network add column availability_zone_hints text[] not null default '{}';
-- +goose Down
alter table network drop column availability_zone_hints;
alter table agent drop column availability_zone;
