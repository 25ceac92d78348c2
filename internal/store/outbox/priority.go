package outbox

import (
	"fmt"

	"berth/internal/contract"
)

// Priorities of notes. A relay claims notes with a lower number first.
const (
	urgent = 0 // somebody waits for the work: Nova for the event of a port, agents for a notification, a user for the start of a lease
	normal = 1
	bulk   = 2 // work that gathers in thousands during an outage
)

// priority returns the priority of the notes of a workflow type.
func priority(workflow string) int {
	switch workflow {
	case contract.Port, contract.Announce, contract.Lease:
		return urgent
	case contract.JournalEntry:
		return bulk
	default:
		return normal
	}
}

// restartPriority returns the priority of a note that restarts the workflow of a row. Thousands of rows may need a restart at the same time,
// so these notes come after the notes of new changes.
func restartPriority(workflow string) int { return min(priority(workflow)+1, bulk) }

// prioritySQL returns the SQL expression of the priority of a workflow type, which is an SQL expression, too.
func prioritySQL(workflow string) string {
	sql := "case " + workflow
	for _, w := range contract.EntityWorkflows {
		sql += fmt.Sprintf(" when '%s' then %d", w, priority(w))
	}
	return sql + fmt.Sprintf(" else %d end", normal)
}

// Shares are the minimum numbers of normal and bulk notes that a claim
// takes, even if enough urgent notes are due, so that no note waits forever.
type Shares struct{ Normal, Bulk int }
