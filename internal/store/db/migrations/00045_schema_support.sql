-- +goose Up
-- The oldest program that may use this schema, by the newest migration that this program contains. An older program refuses the database.
-- A migration that removes something which older programs still use raises oldest_program.
create table schema_support (
    single         boolean primary key default true check (single),
    oldest_program bigint  not null
);
insert into schema_support (oldest_program) values (44);
-- +goose Down
drop table schema_support;
