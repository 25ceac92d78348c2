package reportstore

// The queries, so that a test can examine their plans.
var (
	WaitingSQL       = waitingSQL
	WaitingObjectSQL = waitingObjectSQL
	HeldHostsSQL     = heldHostsSQL
)
