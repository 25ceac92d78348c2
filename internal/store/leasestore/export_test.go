package leasestore

// CalendarSQL is the query of HostCalendar, so that a test can examine its plan.
const CalendarSQL = calendarSQL

// MaxUnsentRepeats is maxUnsentRepeats for tests.
const MaxUnsentRepeats = maxUnsentRepeats

// The queries of BeginDueLeases, ExpireBlockedLeases, readDetails and followerNudges, so that a test can
// examine their plans.
const (
	DueLeasesSQL = dueLeasesSQL
	UnhealthySQL = unhealthySQL // of UnhealthyReservations
)

var (
	LockDueSQL        = lockDueSQL
	BlockedPastEndSQL = blockedPastEndSQL
	DueBlockersSQL    = dueBlockersSQL
	FollowersSQL      = followersSQL
)
