-- +goose Up
-- Audit records that the transactions of requests have written, and that are not yet in the chain. The table has no index, so that its
-- rows cost the transactions as little as possible.
create table audit_pending (
    id     bigint generated always as identity,
    record json not null
);
-- The audit log. The hash of a record covers the record and the hash of the previous record, so a later change of a record is visible. The
-- table has no other columns that filters use, because these could differ from the record.
create table audit_record (
    sequence bigint primary key,
    record   json not null,
    hash     bytea not null check (octet_length(hash) = 32)
);
create index audit_record_at on audit_record using brin (((record ->> 'at') collate "C"));
create index audit_record_project on audit_record ((record ->> 'project'), sequence);
create index audit_record_user on audit_record ((record ->> 'user'), sequence);
create index audit_record_object on audit_record ((record ->> 'object_id'), sequence);
create index audit_record_refused on audit_record (sequence) where record ->> 'outcome' <> 'success';
-- The ends of the chain: the newest record, and the newest record that the retention has deleted.
create table audit_chain (
    id              boolean primary key default true check (id),
    sequence        bigint not null,
    hash            bytea not null check (octet_length(hash) = 32),
    anchor_sequence bigint not null,
    anchor_hash     bytea not null check (octet_length(anchor_hash) = 32),
    check (anchor_sequence <= sequence)
);
insert into audit_chain (sequence, hash, anchor_sequence, anchor_hash)
values (0, decode(repeat('00', 32), 'hex'), 0, decode(repeat('00', 32), 'hex'));
-- +goose Down
drop table audit_chain;
drop table audit_record;
drop table audit_pending;
