-- +goose Up
-- What the processes know together of a controller in trouble, so that all of them probe it no more often than one would.
create table mirror_breaker (
    controller  text        primary key, -- URL of its northbound
    open        boolean     not null,
    since       timestamptz not null, -- time of the last change of `open`
    probe_at    timestamptz not null  -- while the breaker is open, no process sends a request before this time
);
-- +goose Down
drop table mirror_breaker;
