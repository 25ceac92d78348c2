-- +goose Up
-- The check whether a host has room sums the allocations once, in the order of their starts and ends. It used to
-- sum them again at each start, so its time grew with the square of the instances reserved on the host.
-- +goose StatementBegin
create or replace function host_has_room() returns trigger language plpgsql as $function$
declare
    crowded text;
begin
    perform from host where id = new.host_id for no key update;
    with room as materialized (
        select d.class, coalesce(host_capacity(mine.resource_type, new.host_id, d.class), 0) as capacity
        from reservation mine
        cross join lateral jsonb_object_keys(mine.resources) as d (class)
        where mine.id = new.reservation_id)
    select format('host %s has no room for %s at %s', new.host_id, u.class, u.at)
    into crowded
    from (
        select room.class, c.at, room.capacity, sum(c.change) over (partition by room.class order by c.at) as used
        from host_allocation a
        join reservation r on r.id = a.reservation_id
        join room on r.resources ? room.class
        cross join lateral (values
            (greatest(lower(a.during), lower(new.during)), (r.resources ->> room.class)::numeric * a.slots),
            (upper(a.during), - (r.resources ->> room.class)::numeric * a.slots)) as c (at, change)
        where a.host_id = new.host_id and a.during && new.during) u
    where u.used > u.capacity
    order by u.at, u.class
    limit 1;
    if found then
        raise exclusion_violation using message = crowded, constraint = 'host_allocation_room', table = 'host_allocation';
    end if;
    return null;
end
$function$;
-- +goose StatementEnd
