-- +goose Up
-- The segment of the network of a reservation that has ended. Only a network on this segment, or the one whose
-- ID is stored, is the network of the reservation.
alter table reservation_leftover add column network_type text not null default '';
alter table reservation_leftover add column physical_network text not null default '';
alter table reservation_leftover add column segment_id integer not null default 0;

-- The reservation that last began to create the floating IP with this address in Neutron. It has no foreign
-- key, because the removal of a floating IP can be repeated after its lease was deleted.
alter table floatingip add column creator_id uuid;
update floatingip f
set creator_id = r.id
from floatingip_allocation a
join reservation r on r.id = a.reservation_id
join lease l on l.id = r.lease_id
join event e on e.lease_id = l.id and e.event_type = 'start_lease'
where a.floatingip_id = f.id and l.status in ('ACTIVE', 'TERMINATING', 'ERROR', 'DELETING') and e.status = 'DONE'
    and r.shaped >= r.shape;
create index floatingip_creator on floatingip (creator_id) where creator_id is not null;

-- How often the event has begun. The before_end_lease event begins again after each change of its date.
alter table event add column runs integer not null default 0;
