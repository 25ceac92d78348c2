-- +goose Up
-- A credential proves that a message comes from the agents of a host. It
-- is the SHA-256 of a token, or an Ed25519 public key; both have 32 bytes.
create table agent_credential (
    id         uuid primary key default gen_random_uuid(),
    host       text not null check (host <> '' and octet_length(host) <= 255),
    kind       text not null check (kind in ('token', 'key')),
    value      bytea not null check (octet_length(value) = 32),
    created_at timestamptz not null default clock_timestamp(),
    used_on    date, -- the last day, in UTC, on which the credential was used
    unique (kind, value)
);
create index agent_credential_host on agent_credential (host);
-- +goose Down
drop table agent_credential;
