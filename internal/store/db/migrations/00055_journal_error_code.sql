-- +goose Up
-- Why the last attempt at a journal entry failed, as a code for decisions of programs; last_error is a sentence for people. The code is empty
-- if no decision depends on the reason.
alter table journal_entry
    add column error_code text not null default '' check (error_code in ('', 'missing_parent'));
-- An older program writes only the sentence. The trigger also clears the code when an older program writes another sentence.
-- +goose StatementBegin
create function derive_error_code() returns trigger language plpgsql as $$
begin
    new.error_code := case new.last_error
        when 'the controller does not know an object that this one refers to (442)' then 'missing_parent'
        else ''
    end;
    return new;
end
$$;
-- +goose StatementEnd
create trigger journal_entry_error_code before update of last_error on journal_entry
    for each row when (new.last_error <> old.last_error and new.error_code = old.error_code) execute function derive_error_code();
-- Only open entries are recovered.
update journal_entry
set error_code = 'missing_parent'
where finished_at is null and last_error = 'the controller does not know an object that this one refers to (442)';
-- +goose Down
drop trigger journal_entry_error_code on journal_entry;
drop function derive_error_code();
alter table journal_entry
    drop column error_code;
