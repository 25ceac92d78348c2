-- +goose Up
-- When the notification was sent for the first time; null: it was not sent yet, or by a program that does not know
-- the column. A replay sends what an agent may have missed, and not what earlier replays have sent again.
alter table agent_notification add column first_sent_at timestamptz;
