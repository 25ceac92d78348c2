-- +goose Up
-- The changes of generations and their actors, in the order of the writes. A row describes what one write changed: a
-- consumer, a provider, or a consumer and one of its providers. Most writes need only one row. If the generation before
-- the change is null, the write created the consumer or provider; if the generation after the change is null, the write
-- deleted it. There are no foreign keys to consumers and providers, because the history stays after their deletion.
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
