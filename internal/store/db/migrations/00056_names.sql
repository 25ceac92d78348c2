-- +goose Up
-- Tables and columns get the names that the code and the documents use. Older programs use the earlier names.
alter table announcement rename to agent_notification;
alter table agent_notification rename column told_at to sent_at;
alter table agent_notification rename constraint announcement_pkey to agent_notification_pkey;
alter index announcement_network rename to agent_notification_network;
alter index announcement_told rename to agent_notification_sent;
alter table provisioning_notice rename to provisioning_notification;
alter table provisioning_notification rename column notice to notification;
alter table provisioning_notification rename constraint provisioning_notice_pkey to provisioning_notification_pkey;
alter index provisioning_notice_object rename to provisioning_notification_object;
alter table lease_notice rename to lease_notification;
alter table lease_notification rename constraint lease_notice_pkey to lease_notification_pkey;
alter index lease_notice_lease rename to lease_notification_lease;
alter table port rename column epoch to binding_revision;
alter table block rename column epoch to min_revision;
alter table journal_entry rename column unsure to maybe_applied;
alter table journal_entry rename column carrier to sent_by;
update schema_support set oldest_program = 56;
-- +goose Down
alter table journal_entry rename column sent_by to carrier;
alter table journal_entry rename column maybe_applied to unsure;
alter table block rename column min_revision to epoch;
alter table port rename column binding_revision to epoch;
alter index lease_notification_lease rename to lease_notice_lease;
alter table lease_notification rename constraint lease_notification_pkey to lease_notice_pkey;
alter table lease_notification rename to lease_notice;
alter index provisioning_notification_object rename to provisioning_notice_object;
alter table provisioning_notification rename constraint provisioning_notification_pkey to provisioning_notice_pkey;
alter table provisioning_notification rename column notification to notice;
alter table provisioning_notification rename to provisioning_notice;
alter index agent_notification_sent rename to announcement_told;
alter index agent_notification_network rename to announcement_network;
alter table agent_notification rename constraint agent_notification_pkey to announcement_pkey;
alter table agent_notification rename column sent_at to told_at;
alter table agent_notification rename to announcement;
update schema_support set oldest_program = 44;
