-- +goose Up
-- The notifications about leases that are not delivered yet, in order. A notification stays after its lease is deleted.
create table lease_notice (
    id         bigint generated always as identity primary key,
    lease_id   uuid        not null,
    message_id uuid        not null,
    kind       text        not null,
    at         timestamptz not null default clock_timestamp(),
    lease      jsonb       not null -- the state of the lease at that time
);
create index lease_notice_lease on lease_notice (lease_id, id);
-- +goose Down
drop table lease_notice;
