package harness

import "context"

// DeferNotes delays every new note (outbox row) for a workflow type by a day, so that workflows of this type
// do not run while bench measures workflows of another type.
func (s *Stack) DeferNotes(ctx context.Context, workflow string) error {
	_, err := s.Rows.Exec(ctx, `
		create or replace function bench_defer() returns trigger language plpgsql
			as 'begin new.due_at := new.due_at + interval ''1 day''; return new; end';
		create trigger bench_defer before insert on note
			for each row when (new.workflow = '`+workflow+`') execute function bench_defer()`)
	return err
}

// ReleaseNotes ends the effect of DeferNotes and makes the deferred notes due now.
func (s *Stack) ReleaseNotes(ctx context.Context, workflow string) error {
	_, err := s.Rows.Exec(ctx, `
		drop trigger bench_defer on note;
		update note set due_at = now() where due_at > now() + interval '1 hour' and workflow = '`+workflow+`'`)
	return err
}

// DeleteDeferredNotes ends the effect of DeferNotes and deletes the deferred notes.
func (s *Stack) DeleteDeferredNotes(ctx context.Context, workflow string) error {
	_, err := s.Rows.Exec(ctx, `
		drop trigger bench_defer on note;
		delete from note where workflow = '`+workflow+`'`)
	return err
}
