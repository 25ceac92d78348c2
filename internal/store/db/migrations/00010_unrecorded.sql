-- +goose Up
-- A consumer without project and user was imported from an old version of Placement, which stored allocations
-- without a record of the consumer. Such a consumer has the generation 1, as if it had been written once. The
-- next write of its allocations, or an operator's request for all such consumers, sets the project and user.
alter table consumer
    alter project drop not null,
    alter user_id drop not null,
    alter generation set default 1,
    add constraint consumer_record check ((project is null) = (user_id is null));
create index consumer_unrecorded on consumer (id) where project is null;
-- +goose Down
drop index consumer_unrecorded;
update consumer set (project, user_id) = ('00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000') where project is null;
alter table consumer
    drop constraint consumer_record,
    alter generation drop default,
    alter user_id set not null,
    alter project set not null;
