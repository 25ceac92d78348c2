-- +goose Up
-- What others shall be told about a lease, in order, until they were. It outlives the lease.
create table lease_notice (
    id         bigint generated always as identity primary key,
    lease_id   uuid        not null,
    message_id uuid        not null,
    kind       text        not null,
    at         timestamptz not null default clock_timestamp(),
    lease      jsonb       not null -- as it was then
);
create index lease_notice_lease on lease_notice (lease_id, id);
-- +goose Down
drop table lease_notice;
