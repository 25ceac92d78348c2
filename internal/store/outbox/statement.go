package outbox

// The functions of this file return SQL for stores that change notes and rows of their own tables in one
// statement. The arguments of these functions are SQL, too: the name of a table, the name of a common table
// expression, or an SQL expression.

// SelectEnqueue returns the SQL that enqueues a note for each row of the select `rows`, which returns
// workflow ID, summary and attributes. Each note becomes due after the delay, or earlier if a note of the
// same workflow already waits and is due earlier.
func SelectEnqueue(rows, workflow, delay string) string {
	return insertSelected(rows, workflow, delay) + `least(note.due_at, excluded.due_at)`
}

// SelectPostpone does the same as SelectEnqueue, except that a note that already waits does not keep an
// earlier due time, but becomes due after the delay.
func SelectPostpone(rows, workflow, delay string) string {
	return insertSelected(rows, workflow, delay) + `excluded.due_at`
}

func insertSelected(rows, workflow, delay string) string {
	return `
		insert into note (workflow_id, workflow, fresh, summary, attributes, due_at, priority)
		select w.id, ` + workflow + `, false, w.summary, w.attributes, now() + ` + delay + `, ` + prioritySQL(workflow) + `
		from (` + rows + `) as w (id, summary, attributes)
		on conflict (workflow_id) do update
		set version = note.version + 1, fresh = note.fresh and note.attempts = 0, due_at = `
}

// SelectEnqueueClaimed does the same as SelectEnqueue, but the statement also claims the notes for the
// duration `claim`, because the caller of SelectEnqueueClaimed delivers the notes itself. The statement of
// SelectEnqueueClaimed returns the notes in the form that ScanNote reads. A note that already waits gets the
// attributes that the select returns.
func SelectEnqueueClaimed(rows, workflow, claim string) string {
	return `
		insert into note (workflow_id, workflow, fresh, summary, attributes, due_at, first_due_at, attempts, priority)
		select w.id, ` + workflow + `, false, w.summary, w.attributes, now() + ` + claim + `, now(), 1, ` + prioritySQL(workflow) + `
		from (` + rows + `) as w (id, summary, attributes)
		on conflict (workflow_id) do update
		set version = note.version + (note.attempts > 0)::int, fresh = note.fresh and note.attempts = 0, attempts = note.attempts + 1,
			attributes = excluded.attributes, first_due_at = least(note.first_due_at, note.due_at, excluded.first_due_at), due_at = excluded.due_at
		returning ` + noteColumns
}

// DeleteDelivered returns the SQL that deletes, for each row of the table `from`, the note of the row's
// workflow. The caller knows that this workflow is running. The statement of DeleteDelivered does not delete
// a note into which another nudge was merged, unless the SQL condition `ended` says that the workflow has
// nothing left to do.
func DeleteDelivered(from, workflowID, ended string) string {
	return `
		delete from note n
		using ` + from + `
		where n.workflow_id = ` + workflowID + ` and (` + ended + ` or n.version = 1)`
}

// MakeDueNow returns the SQL that makes due now, for each row of the table `from` that meets the condition,
// the note of the row's workflow. A note that a relay has claimed is not changed. The caller of MakeDueNow
// may append a returning clause to the SQL.
func MakeDueNow(from, workflowID, condition string) string {
	return `
		update note n
		set due_at = now()
		from ` + from + `
		where n.workflow_id = ` + workflowID + ` and n.attempts = 0 and ` + condition
}

// Exists returns the SQL condition that a workflow has a note.
func Exists(workflowID string) string {
	return `exists (select from note n where n.workflow_id = ` + workflowID + `)`
}
