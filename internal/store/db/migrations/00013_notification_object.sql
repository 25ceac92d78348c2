-- +goose Up
-- A new notification is merged with the equal ones about its object that are unsent.
create index agent_notification_object on agent_notification (object_id) where sent_at is null;
