-- +goose Up
-- When the notification was sent for the first time; null: it was not sent yet, or by a program that does not know
-- the column. Replays repeat a notification only for a limited time after its first sending.
alter table agent_notification add column first_sent_at timestamptz;
