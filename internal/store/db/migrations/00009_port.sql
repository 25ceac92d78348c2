-- +goose Up
alter table port
    drop constraint port_status_check,
    drop constraint port_check,
    drop constraint port_check1,
    add constraint port_status check (status in ('ACTIVE', 'DOWN', 'BUILD', 'ERROR')),
    add constraint port_bound check (case vif when 'unbound' then host = '' when 'distributed' then true else host <> '' end),
    add constraint port_active check (status not in ('ACTIVE', 'BUILD') or (admin_up and vif not in ('unbound', 'binding_failed'))),
    add column epoch bigint not null default 1; -- the revision in which it was last bound

-- What a port is tied to besides its own host: hosts that it may move to, or those that a distributed one is wired on.
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

-- An entity that has to report before an object of any type is what it shall be. Whoever deletes the object deletes these.
alter table provisioning_block rename to block;
alter table block rename column port_id to object_id;
alter table block
    drop constraint provisioning_block_port_id_fkey,
    add column object_type text    not null default 'port',
    add column epoch       bigint  not null default 1,  -- the revision of the object from which on work counts
    add column state       text    not null default '', -- the last that its agent said
    add column fatal       boolean not null default false,
    add constraint block_deadline check (deadline is not null or not fatal);
-- For processes of the version before, which run while this one is rolled out.
create view provisioning_block as
select object_id as port_id, entity, host, since, deadline
from block;

-- A change that Nova does not know of yet is told once, after the last.
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
