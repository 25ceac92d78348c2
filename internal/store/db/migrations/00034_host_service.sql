-- +goose Up
-- Nova's aggregates and lists of servers know compute services, so a compute service can serve only one reservable host.
alter table host add constraint host_service_name unique (service_name);
-- +goose Down
alter table host drop constraint host_service_name;
