package storetest

// generationGuard is SQL for the template of every test database. The triggers of generationGuard reject a
// transaction of berth that changes the generation of a consumer or provider but writes no row for this
// change into the table generation_change. The triggers check the state at the commit, so a consumer or
// provider that is created and deleted in the same transaction needs no row in generation_change.
const generationGuard = `
create function check_generation() returns trigger language plpgsql as $$
declare
	is_last boolean;
	is_recorded boolean;
begin
	if current_setting('application_name') <> 'berth' then -- SQL of the test itself
		return null;
	end if;
	if tg_op = 'DELETE' then
		if old.created_at = now() then
			return null;
		end if;
		execute format('select exists (select from generation_change where %I = $1 and %I is null and at >= now())', tg_table_name, tg_table_name || '_to')
		into is_recorded using old.uuid;
		if not is_recorded then
			raise 'generation_change lacks a row for the deletion of % %', tg_table_name, old.uuid;
		end if;
		return null;
	end if;
	execute format('select exists (select from %I where id = $1 and generation = $2)', tg_table_name)
	into is_last using new.id, new.generation;
	execute format('select exists (select from generation_change where %I = $1 and %I = $2 and at >= now())', tg_table_name, tg_table_name || '_to')
	into is_recorded using new.uuid, new.generation;
	if is_last and not is_recorded then
		raise 'generation_change lacks a row for generation % of % %', new.generation, tg_table_name, new.uuid;
	end if;
	return null;
end $$;
create constraint trigger check_generation after insert or delete on consumer
deferrable initially deferred for each row execute function check_generation();
create constraint trigger check_generation_update after update of generation on consumer
deferrable initially deferred for each row when (old.generation <> new.generation) execute function check_generation();
create constraint trigger check_generation after insert or delete on provider
deferrable initially deferred for each row execute function check_generation();
create constraint trigger check_generation_update after update of generation on provider
deferrable initially deferred for each row when (old.generation <> new.generation) execute function check_generation();
`
