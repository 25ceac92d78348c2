-- +goose Up
-- A heartbeat writes the row of its agent again, with all configurations. With room for it on the same page, no
-- index changes (HOT).
alter table agent set (fillfactor = 70);

-- The first heartbeat of an agent counts the agents of its host.
create index agent_host on agent (host);
