-- +goose Up
-- The projects whose events wait take turns. Empty: a program that does not know the column has written the event.
alter table nova_event add column project text not null default '';
