package blazar

import (
	"regexp"
	"time"

	"berth/internal/lease"
)

// What goes out never has a zone; what comes in is UTC unless it says otherwise.
const (
	dateOut      = "2006-01-02T15:04:05.000000"
	stampOut     = "2006-01-02 15:04:05"
	stampFineOut = "2006-01-02 15:04:05.000000"
	minuteIn     = "2006-1-2 15:4"
	lastYear     = 9999
)

// exact is our own second-exact form of a date: RFC 3339 with an explicit zone.
var exact = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})$`)

// instant reads a date, without the word "now".
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

// moment reads a date or the word "now".
func moment(value string) (lease.Moment, error) {
	if value == "now" {
		return lease.Moment{Now: true}, nil
	}
	at, err := instant(value)
	return lease.Moment{At: at}, err
}

func invalidDate(value string) error {
	const shown = 100
	if len(value) > shown {
		value = value[:shown] + "…"
	}
	return lease.Refuse(lease.InvalidInput, "%s is an invalid date. Required format: %%Y-%%m-%%d %%H:%%M", value)
}

func date(t time.Time) string { return t.UTC().Format(dateOut) }

// stamp writes created_at and updated_at, which leave a fraction out that is zero.
func stamp(t time.Time) string {
	t = t.UTC().Truncate(time.Microsecond)
	if t.Nanosecond() == 0 {
		return t.Format(stampOut)
	}
	return t.Format(stampFineOut)
}

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
