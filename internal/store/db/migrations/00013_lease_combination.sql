-- +goose Up
-- The statuses that reservations and events may have, for each status of a lease. The table is the same as the table in package lease,
-- so that no writer can store a lease whose statuses contradict each other. The status of the event before_end_lease is not checked.
create table lease_combination (
    status       text   primary key,
    reservations text[] not null,
    starts       text[] not null,
    ends         text[] not null
);
insert into lease_combination (status, reservations, starts, ends) values
    ('CREATING',    '{pending}',                      '{UNDONE}',            '{UNDONE}'),
    ('PENDING',     '{pending}',                      '{UNDONE}',            '{UNDONE}'),
    ('STARTING',    '{pending,active,error}',         '{IN_PROGRESS}',       '{UNDONE}'),
    ('ACTIVE',      '{active}',                       '{DONE}',              '{UNDONE}'),
    ('TERMINATING', '{active,deleted,error}',         '{DONE,ERROR}',        '{IN_PROGRESS}'),
    ('TERMINATED',  '{deleted}',                      '{DONE}',              '{DONE}'),
    ('ERROR',       '{error}',                        '{DONE,ERROR}',        '{UNDONE,ERROR}'),
    ('DELETING',    '{pending,active,deleted,error}', '{UNDONE,DONE,ERROR}', '{UNDONE,DONE,ERROR}'),
    ('UPDATING',    '{pending,active,deleted,error}', '{UNDONE,DONE,ERROR}', '{UNDONE,DONE,ERROR}');

-- lease_agrees refuses, at the commit, a lease whose statuses are not in the table. lease_agrees locks the lease
-- first: otherwise each of two writers of different rows of a lease could see the old row of the other writer.
-- +goose StatementBegin
create function lease_agrees() returns trigger language plpgsql as $$
declare
    its uuid;
    is_now text;
begin
    if tg_table_name = 'lease' then
        its := new.id;
    elsif tg_op = 'DELETE' then
        its := old.lease_id;
    else
        its := new.lease_id;
    end if;
    perform from lease where id = its for no key update;
    select format('lease %s is %s, its start %s, its end %s, its reservations %s', l.id, l.status, coalesce(s.status, 'missing'),
            coalesce(e.status, 'missing'), array(select r.status from reservation r where r.lease_id = l.id order by r.position))
    into is_now
    from lease l
    left join lease_combination c on c.status = l.status
    left join event s on s.lease_id = l.id and s.event_type = 'start_lease'
    left join event e on e.lease_id = l.id and e.event_type = 'end_lease'
    where l.id = its and (s.status = any(c.starts) and e.status = any(c.ends)
        and not exists (select from reservation r where r.lease_id = l.id and r.status <> all(c.reservations))) is not true;
    if found then
        raise check_violation using message = is_now, constraint = 'lease_agrees', table = 'lease';
    end if;
    return null;
end
$$;
-- +goose StatementEnd

create constraint trigger lease_made after insert on lease
    deferrable initially deferred for each row execute function lease_agrees();
create constraint trigger lease_agrees after update on lease
    deferrable initially deferred for each row when (old.status <> new.status) execute function lease_agrees();
create constraint trigger reservation_made after insert on reservation
    deferrable initially deferred for each row execute function lease_agrees();
create constraint trigger reservation_agrees after update on reservation
    deferrable initially deferred for each row
    when ((old.status, old.lease_id) <> (new.status, new.lease_id)) execute function lease_agrees();
create constraint trigger event_agrees after update on event
    deferrable initially deferred for each row
    when ((old.status, old.lease_id, old.event_type) <> (new.status, new.lease_id, new.event_type)) execute function lease_agrees();
create constraint trigger event_kept after delete on event
    deferrable initially deferred for each row when (old.event_type <> 'before_end_lease') execute function lease_agrees();
-- +goose Down
drop trigger event_kept on event;
drop trigger event_agrees on event;
drop trigger reservation_agrees on reservation;
drop trigger reservation_made on reservation;
drop trigger lease_agrees on lease;
drop trigger lease_made on lease;
drop function lease_agrees;
drop table lease_combination;
