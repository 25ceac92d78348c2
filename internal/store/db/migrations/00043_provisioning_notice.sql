-- +goose Up
-- The notifications that nothing blocks a port or a trunk any more, which are not delivered to the webhook yet, in order. A
-- notification stays after its port or trunk is deleted.
create table provisioning_notice (
    id         bigint generated always as identity primary key,
    object_id  uuid        not null,
    message_id uuid        not null default gen_random_uuid(),
    at         timestamptz not null default clock_timestamp(),
    notice     jsonb       not null
);
create index provisioning_notice_object on provisioning_notice (object_id, id);
-- +goose Down
drop table provisioning_notice;
