package leasestore

// CalendarSQL is the query of HostCalendar, so that a test can examine its plan.
const CalendarSQL = calendarSQL

// MaxUnsentRepeats is maxUnsentRepeats for tests.
const MaxUnsentRepeats = maxUnsentRepeats

// DueLeasesSQL is the query of BeginDueLeases, so that a test can examine its plan.
var DueLeasesSQL = dueLeasesSQL
