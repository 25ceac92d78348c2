package outbox

// The functions of this file return SQL for stores that change notes and their own rows in one statement. The arguments are
// SQL, too: the name of a table or a common table expression, or an expression.

// SelectEnqueue returns the SQL that enqueues a note for each row of a select of workflow ID, summary and attributes. The
// notes become due after the delay, or earlier if the workflow's waiting note is due earlier.
func SelectEnqueue(rows, workflow, delay string) string {
	return insertSelected(rows, workflow, delay) + `least(note.due_at, excluded.due_at)`
}

// SelectPostpone does the same as SelectEnqueue, except that it also postpones a waiting note to the end of the delay.
func SelectPostpone(rows, workflow, delay string) string {
	return insertSelected(rows, workflow, delay) + `excluded.due_at`
}

func insertSelected(rows, workflow, delay string) string {
	return `
		insert into note (workflow_id, workflow, fresh, summary, attributes, due_at)
		select w.id, ` + workflow + `, false, w.summary, w.attributes, now() + ` + delay + `
		from (` + rows + `) as w (id, summary, attributes)
		on conflict (workflow_id) do update
		set version = note.version + 1, fresh = note.fresh and note.attempts = 0, due_at = `
}

// neverClaimed is the SQL condition that the note n would start a workflow for the first time and that no relay has claimed it.
const neverClaimed = `n.fresh and n.attempts = 0`

// DeleteNeverClaimed returns the SQL that deletes the workflow's note, if no relay has claimed it yet, for each row of a
// table that meets the condition.
func DeleteNeverClaimed(from, workflowID, condition string) string {
	return `
		delete from note n
		using ` + from + `
		where n.workflow_id = ` + workflowID + ` and ` + neverClaimed + ` and ` + condition
}

// PostponeNeverClaimed returns the SQL that makes the note of a workflow due at an instant, if no relay has claimed it yet, for
// each row of a table. The caller may add a returning clause.
func PostponeNeverClaimed(from, workflowID, dueAt string) string {
	return `
		update note n
		set due_at = ` + dueAt + `
		from ` + from + `
		where n.workflow_id = ` + workflowID + ` and ` + neverClaimed
}

// MakeDueNow returns the SQL that makes the note of a workflow due now, unless a relay has claimed it, for each row of a table
// that meets the condition. The caller may add a returning clause.
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
