-- +goose Up
create table reservation_failure (
    reservation_id uuid primary key references reservation on delete cascade,
    party text not null,
    call text not null,
    error text not null,
    since timestamptz not null default clock_timestamp(),
    last_at timestamptz not null default clock_timestamp(),
    next_at timestamptz,
    attempts integer not null default 1 check (attempts >= 1)
);
-- +goose Down
drop table reservation_failure;
