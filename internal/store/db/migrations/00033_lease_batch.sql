-- +goose Up
-- The time until which the batch that has begun the step of a lease must
-- finish the step. After this time, any process may take the step over.
alter table lease add column batch_until timestamptz;
create index lease_batch on lease (batch_until) where batch_until is not null;
-- Reservations of deleted leases that are removed from Nova and Neutron once more, because a call that was running during the deletion can
-- have created an object after the removal.
create table reservation_leftover (
    reservation_id uuid primary key,
    resource_type text not null,
    project_id text not null,
    services text[] not null,
    due_at timestamptz not null,
    attempts integer not null default 0,
    last_error text not null default '',
    created_at timestamptz not null default clock_timestamp()
);
create index reservation_leftover_due on reservation_leftover (due_at);
-- +goose Down
drop table reservation_leftover;
alter table lease drop column batch_until;
