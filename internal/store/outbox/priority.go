package outbox

import (
	"fmt"

	"berth/internal/contract"
)

// Priorities of notes. A relay claims notes with a lower number first.
const (
	// Nova waits for a port's event, agents wait for a notification, or a user waits for the start of a lease
	urgent = 0
	normal = 1
	bulk   = 2 // thousands of these notes can accumulate during an outage
)

// priority returns the priority of the notes of a workflow type.
func priority(workflow string) int {
	switch workflow {
	case contract.Port, contract.AgentNotifications, contract.Lease:
		return urgent
	case contract.JournalEntry:
		return bulk
	default:
		return normal
	}
}

// restartPriority returns the priority of a note that restarts the workflow of a row. Thousands of rows may
// need a restart at the same time, so these notes come after the notes of new changes.
func restartPriority(workflow string) int { return min(priority(workflow)+1, bulk) }

// prioritySQL returns the SQL expression of a workflow type's priority. The parameter `workflow` is the SQL
// expression of the workflow type.
func prioritySQL(workflow string) string {
	sql := "case " + workflow
	for _, w := range contract.EntityWorkflows {
		sql += fmt.Sprintf(" when '%s' then %d", w, priority(w))
	}
	return sql + fmt.Sprintf(" else %d end", normal)
}

// Shares are the minimum numbers of normal and bulk notes that one call of ClaimShares claims. They also
// apply while urgent notes alone reach the limit of the call, so that no note waits forever.
type Shares struct{ Normal, Bulk int }
