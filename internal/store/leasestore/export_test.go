package leasestore

// CalendarSQL is the query of HostCalendar, so that a test can examine its plan.
const CalendarSQL = calendarSQL
