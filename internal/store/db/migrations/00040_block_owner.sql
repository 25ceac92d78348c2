-- +goose Up
-- Who has added the block through the API or a signal; empty: berth's own rules. A block with an owner keeps its own deadline.
alter table block add column owner text not null default '';
-- +goose Down
alter table block drop column owner;
