-- +goose Up
-- Who moved which generation, in the order of the writes. A row is what one write did to a consumer, to a provider,
-- or to a consumer and a provider between which something was allocated or released: most writes are one row.
-- A generation that is missing before belongs to what was created, one that is missing after to what is gone.
-- No key refers to either, because the history outlives them.
create table generation_change (
    id            bigint generated always as identity primary key,
    at            timestamptz not null default clock_timestamp(),
    actor         text not null,
    cause         text not null,
    consumer      text collate "C",
    consumer_from bigint,
    consumer_to   bigint,
    provider      text collate "C",
    provider_from bigint,
    provider_to   bigint,
    check (num_nonnulls(consumer, provider) > 0),
    check ((consumer is null) = (num_nonnulls(consumer_from, consumer_to) = 0)),
    check ((provider is null) = (num_nonnulls(provider_from, provider_to) = 0))
);
create index generation_change_consumer on generation_change (consumer, id) where consumer is not null;
create index generation_change_provider on generation_change (provider, id) where provider is not null;
-- +goose Down
drop table generation_change;
