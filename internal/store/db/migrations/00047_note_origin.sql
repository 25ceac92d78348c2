-- +goose Up
-- The request that enqueued a note, and its trace. The workflow that the note starts or signals continues the trace.
alter table note
    add column traceparent       text,
    add column request_id        text,
    add column global_request_id text;
-- +goose Down
alter table note
    drop column traceparent,
    drop column request_id,
    drop column global_request_id;
