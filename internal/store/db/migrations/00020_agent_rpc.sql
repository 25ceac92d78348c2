-- +goose Up
-- The versions of RPC objects that an agent accepts, as the agent has reported them at its start.
alter table agent add column versions jsonb not null default '{}';
-- The tunnel endpoints that agents have reported.
create table tunnel_end (
    type text not null,
    ip   inet not null,
    host text not null, -- empty if the agent did not report the host
    primary key (type, ip)
);
create unique index tunnel_end_host on tunnel_end (type, host) where host <> '';
-- +goose Down
drop table tunnel_end;
alter table agent drop column versions;
