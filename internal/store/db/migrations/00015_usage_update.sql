-- +goose Up
-- A changed amount changes each inventory once. It used to subtract the old amounts and then add the new ones.
-- +goose StatementBegin
create or replace function count_usage() returns trigger language plpgsql as $function$
begin
    if tg_op = 'INSERT' then
        update inventory i
        set used = i.used + a.amount
        from (select provider_id, class_id, sum(amount) as amount from new_allocation group by provider_id, class_id) a
        where i.provider_id = a.provider_id and i.class_id = a.class_id;
    elsif tg_op = 'DELETE' then
        update inventory i
        set used = i.used - a.amount
        from (select provider_id, class_id, sum(amount) as amount from old_allocation group by provider_id, class_id) a
        where i.provider_id = a.provider_id and i.class_id = a.class_id;
    else
        update inventory i
        set used = i.used + a.amount
        from (
            select provider_id, class_id, sum(amount) as amount
            from (
                select provider_id, class_id, amount from new_allocation
                union all
                select provider_id, class_id, - amount from old_allocation) changed
            group by provider_id, class_id
            having sum(amount) <> 0) a
        where i.provider_id = a.provider_id and i.class_id = a.class_id;
    end if;
    return null;
end
$function$;
-- +goose StatementEnd
