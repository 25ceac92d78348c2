-- +goose Up
-- The ID of the request that changed the generations; null: no request, or a program that does not know the
-- column.
alter table generation_change add column request_id text;
