-- +goose Up
-- The allocated amount of each inventory. Triggers keep the amount, whichever statement writes the allocations, so that a write and a read
-- cost the same at 10 and at 1,000,000 allocations. Every allocation updates its inventory: free space lets PostgreSQL update the row in the
-- same page.
alter table inventory add column used bigint not null default 0 constraint inventory_used_check check (used >= 0);
alter table inventory set (fillfactor = 70);
-- +goose StatementBegin
create function count_usage() returns trigger language plpgsql as $$
begin
    if tg_op in ('UPDATE', 'DELETE') then
        update inventory i
        set used = i.used - a.amount
        from (select provider_id, class_id, sum(amount) as amount from old_allocation group by provider_id, class_id) a
        where i.provider_id = a.provider_id and i.class_id = a.class_id;
    end if;
    if tg_op in ('INSERT', 'UPDATE') then
        update inventory i
        set used = i.used + a.amount
        from (select provider_id, class_id, sum(amount) as amount from new_allocation group by provider_id, class_id) a
        where i.provider_id = a.provider_id and i.class_id = a.class_id;
    end if;
    return null;
end
$$;
-- +goose StatementEnd
create trigger allocation_inserted after insert on allocation
    referencing new table as new_allocation for each statement execute function count_usage();
create trigger allocation_updated after update on allocation
    referencing old table as old_allocation new table as new_allocation for each statement execute function count_usage();
create trigger allocation_deleted after delete on allocation
    referencing old table as old_allocation for each statement execute function count_usage();
-- The triggers hold a lock that keeps writers out until the migration is committed.
update inventory i
set used = a.amount
from (select provider_id, class_id, sum(amount) as amount from allocation group by provider_id, class_id) a
where i.provider_id = a.provider_id and i.class_id = a.class_id;
-- +goose Down
drop trigger allocation_inserted on allocation;
drop trigger allocation_updated on allocation;
drop trigger allocation_deleted on allocation;
drop function count_usage();
alter table inventory reset (fillfactor);
alter table inventory drop column used;
