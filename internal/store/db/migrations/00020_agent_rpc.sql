-- +goose Up
-- Which versions of which objects an agent understands, as it said when it started.
alter table agent add column versions jsonb not null default '{}';
-- The ends of tunnels that agents have told of.
create table tunnel_end (
    type text not null,
    ip   inet not null,
    host text not null, -- empty if the agent did not say
    primary key (type, ip)
);
create unique index tunnel_end_host on tunnel_end (type, host) where host <> '';
-- +goose Down
drop table tunnel_end;
alter table agent drop column versions;
