-- +goose Up
-- When each part of the periodic maintenance has last been completed. The first three parts have a row from the
-- start, so that their age grows even if no round ever completes them.
create table maintenance (
    part         text        primary key,
    completed_at timestamptz not null default now()
);
insert into maintenance (part) values ('sweep'), ('controller'), ('healing');
