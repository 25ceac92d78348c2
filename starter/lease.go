package main

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones by name, wherever this runs

	"github.com/spf13/pflag"
)

// dateHelp are the forms of a date on the command line.
const dateHelp = `now, +90m, +3d, 2030-01-31T10:00:00Z, or "2030-01-31 10:00" (UTC) with or without a zone such as Europe/Paris`

// instant reads now, +DURATION from now, a date with a zone, or a date in one of the API's forms, which goes there as
// it is.
func instant(_ context.Context, _ *session, words []string) (any, error) {
	return instantAt(words[0], time.Now())
}

func instantAt(word string, now time.Time) (any, error) {
	if after, relative := strings.CutPrefix(word, "+"); relative {
		d, err := duration(after)
		if err != nil {
			return nil, err
		}
		return second(now.Add(d)), nil
	}
	if parts := zoned.FindStringSubmatch(word); parts != nil {
		at, err := inZone(parts[1], parts[2])
		if err != nil {
			return nil, err
		}
		return second(at), nil
	}
	if word != "now" && (word == "" || word[0] < '0' || word[0] > '9') {
		return nil, usage("%q is not a time such as %s", word, dateHelp)
	}
	return word, nil
}

var days = regexp.MustCompile(`^(\d{1,5})d(.*)$`)

// duration reads what time.ParseDuration does, and days before it.
func duration(word string) (time.Duration, error) {
	var whole time.Duration
	rest := word
	if parts := days.FindStringSubmatch(word); parts != nil {
		n, _ := strconv.Atoi(parts[1])
		whole, rest = time.Duration(n)*24*time.Hour, parts[2]
		if rest == "" {
			return whole, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 {
		return 0, usage("%q is not a duration such as 30s, 2h or 3d", word)
	}
	return whole + d, nil
}

// zoned is a date and time, and a zone after a blank: a name, an offset or Z.
var zoned = regexp.MustCompile(`^(\d{4}-\d{1,2}-\d{1,2} \d{1,2}:\d{2}(?::\d{2})?) ([A-Za-z+-].*)$`)

// inZone is the instant at which the clocks of a zone show something. When they are moved, some times never come
// and some come twice: both are refused.
func inZone(clock, zone string) (time.Time, error) {
	form := "2006-1-2 15:04"
	if strings.Count(clock, ":") == 2 {
		form += ":05"
	}
	where, err := zoneOf(zone)
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.ParseInLocation(form, clock, where)
	if err != nil {
		return at, usage("%q is not a date and time such as 2030-01-31 10:00", clock)
	}
	same := 0
	for _, moved := range []time.Duration{-time.Hour, -30 * time.Minute, 0, 30 * time.Minute, time.Hour} {
		there, _ := time.Parse(form, at.Add(moved).Format(form))
		if meant, _ := time.Parse(form, clock); there.Equal(meant) {
			same++
		}
	}
	if same != 1 {
		return at, usage("the clocks of %s are moved then and show %q %d times: say it with an offset such as +02:00", zone, clock, same)
	}
	return at, nil
}

// zoneOf is a zone by its name or its offset.
func zoneOf(name string) (*time.Location, error) {
	if offset, err := time.Parse("-07:00", name); err == nil {
		return offset.Location(), nil
	}
	if name == "Z" || name == "z" {
		return time.UTC, nil
	}
	where, err := time.LoadLocation(name)
	if err != nil {
		return nil, usage("%q is not a time zone such as UTC, Europe/Paris or +02:00", name)
	}
	return where, nil
}

// second writes an instant as the API takes it to the second.
func second(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// hostWrite registers a host (POST) or changes its properties (PUT).
func hostWrite(method string) func(*pflag.FlagSet) action {
	return func(f *pflag.FlagSet) action {
		extras := f.StringArray("property", nil, "NAME=VALUE that leases can ask for; may be repeated")
		return func(ctx context.Context, s *session, args []string) error {
			properties, err := pairs(*extras)
			if err != nil {
				return err
			}
			body := object{}
			for name, value := range properties {
				body[name] = value
			}
			var o object
			if method == "POST" {
				body["name"] = args[0]
				o, err = hosts.create(ctx, s, body)
			} else {
				o, err = hostUpdate(ctx, s, args[0], body)
			}
			if err != nil {
				return err
			}
			return s.out.show(o, hosts.columns)
		}
	}
}

func hostUpdate(ctx context.Context, s *session, word string, body object) (object, error) {
	if len(body) == 0 {
		return nil, fail(exitUsage, "See `starter host set --help`.", "nothing to set")
	}
	id, err := hosts.resolve(ctx, s, word)
	if err != nil {
		return nil, err
	}
	return hosts.update(ctx, s, id, body)
}
