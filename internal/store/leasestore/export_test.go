package leasestore

// CalendarSQL is the query of HostCalendar, so that a test can examine its plan.
const CalendarSQL = calendarSQL

// MaxUnsentUpdates is maxUnsentUpdates for tests.
const MaxUnsentUpdates = maxUnsentUpdates

// DueLeasesSQL is the query of BeginDueLeases, so that a test can examine its plan.
var DueLeasesSQL = dueLeasesSQL
