-- +goose Up
alter table port
    drop constraint port_status_check,
    drop constraint port_check,
    drop constraint port_check1,
    add constraint port_status check (status in ('ACTIVE', 'DOWN', 'BUILD', 'ERROR')),
    add constraint port_bound check (case vif when 'unbound' then host = '' when 'distributed' then true else host <> '' end),
    add constraint port_active check (status not in ('ACTIVE', 'BUILD') or (admin_up and vif not in ('unbound', 'binding_failed'))),
    add column epoch bigint not null default 1; -- the revision of the port's last binding

-- The bindings of a port to other hosts than its own: hosts to which the port may move, or hosts on which a distributed port is wired.
create table port_binding (
    port_id uuid    not null references port on delete cascade,
    host    text    not null,
    status  text    not null check (status in ('INACTIVE', 'BUILD', 'ACTIVE')),
    vnic    text    not null,
    profile jsonb   not null,
    vif     text    not null,
    plugged boolean not null, -- the agent of an INACTIVE binding has reported
    primary key (port_id, host)
);

-- A row says that an entity has to report before an object of any type is
-- ready. The code that deletes an object must also delete the object's rows.
alter table provisioning_block rename to block;
alter table block rename column port_id to object_id;
alter table block
    drop constraint provisioning_block_port_id_fkey,
    add column object_type text    not null default 'port',
    add column epoch       bigint  not null default 1,  -- reports about an earlier revision of the object do not count
    add column state       text    not null default '', -- the last report of the entity's agent
    add column fatal       boolean not null default false,
    add constraint block_deadline check (deadline is not null or not fatal);
-- For processes of the previous version of berth, which still run while this version is rolled out.
create view provisioning_block as
select object_id as port_id, entity, host, since, deadline
from block;

-- If a port changes several times before Nova gets the event network-changed, one event is enough.
create unique index nova_event_changed on nova_event (port_id, server) where name = 'network-changed';
-- +goose Down
drop index nova_event_changed;
drop view provisioning_block;
delete from block where object_type <> 'port' or not exists (select from port p where p.id = block.object_id);
alter table block drop column object_type, drop column epoch, drop column state, drop column fatal;
alter table block rename column object_id to port_id;
alter table block rename to provisioning_block;
alter table provisioning_block
    add constraint provisioning_block_port_id_fkey foreign key (port_id) references port on delete cascade;
drop table port_binding;
update port set status = 'DOWN' where status in ('BUILD', 'ERROR');
delete from port where vif = 'distributed';
alter table port
    drop constraint port_status,
    drop constraint port_bound,
    drop constraint port_active,
    drop column epoch,
    add constraint port_status_check check (status in ('ACTIVE', 'DOWN')),
    add constraint port_check check ((host = '') = (vif = 'unbound')),
    add constraint port_check1 check (status <> 'ACTIVE' or (admin_up and vif not in ('unbound', 'binding_failed')));
