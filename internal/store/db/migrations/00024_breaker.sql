-- +goose Up
-- The state of the circuit breaker of a controller. All processes share it, so
-- that together they probe the controller no more often than one process would.
create table mirror_breaker (
    controller  text        primary key, -- URL of the controller's northbound API
    open        boolean     not null,
    since       timestamptz not null, -- time of the last change of `open`
    probe_at    timestamptz not null  -- while the breaker is open, no process sends a request before this time
);
-- +goose Down
drop table mirror_breaker;
