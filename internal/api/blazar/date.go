package blazar

import (
	"regexp"
	"time"

	"berth/internal/lease"
)

// Layouts of dates. Dates in answers have no time zone and are in UTC. If a date in a request has no time
// zone, it is in UTC.
const (
	dateOut  = "2006-01-02T15:04:05.000000"
	stampOut = "2006-01-02 15:04:05"
	minuteIn = "2006-1-2 15:4"
	lastYear = 9999
)

// exact matches a date in RFC 3339 with seconds and a time zone. berth accepts RFC 3339 dates in addition to
// Blazar's date formats.
var exact = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})$`)

// instant parses a date. instant returns an error for the word "now".
func instant(value string) (time.Time, error) {
	layout := minuteIn
	if exact.MatchString(value) {
		layout = time.RFC3339Nano
	}
	t, err := time.Parse(layout, value)
	if err != nil || t.UTC().Year() < 1 || t.UTC().Year() > lastYear {
		return t, invalidDate(value)
	}
	return t.UTC(), nil
}

// moment parses a date or the word "now".
func moment(value string) (lease.RequestedDate, error) {
	if value == "now" {
		return lease.RequestedDate{Now: true}, nil
	}
	at, err := instant(value)
	return lease.RequestedDate{At: at}, err
}

func invalidDate(value string) error {
	return lease.Faultf(lease.InvalidInput,
		"%s is an invalid date. Required format: %%Y-%%m-%%d %%H:%%M", excerpt(value))
}

func date(t time.Time) string { return t.UTC().Format(dateOut) }

// stamp formats a time for created_at or updated_at, to the second: Blazar's usual database stores no
// fraction, and clients such as python-chi do not parse a fraction.
func stamp(t time.Time) string { return t.UTC().Format(stampOut) }

func stampOrNull(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := stamp(*t)
	return &s
}

func dateOrNull(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := date(*t)
	return &s
}
