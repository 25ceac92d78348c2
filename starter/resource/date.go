package resource

import (
	"cmp"
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // time zones by name on systems without a zone database

	"berth/starter/cli"
)

// dateHelp lists the formats of a date on the command line.
const dateHelp = `now, +90m, +3d, 2030-01-31T10:00:00Z, "2030-01-31 10:00" or "tomorrow 09:00" (UTC) with or without a zone such as Europe/Paris`

// parseInstantFlag is the Parser of the flags that take a date.
func parseInstantFlag(_ context.Context, s *cli.Session, values []string) (any, error) {
	return parseInstant(values[0], s.Now())
}

// parseInstant converts a duration from now such as +90m, or a date with a time zone, to a date in one of the
// formats that the API accepts. parseInstant returns the word `now` and any other word that begins with a
// digit unchanged; the API checks these words.
func parseInstant(word string, now time.Time) (any, error) {
	if after, relative := strings.CutPrefix(word, "+"); relative {
		d, err := parseDuration(after)
		if err != nil {
			return nil, err
		}
		return FormatSecond(now.Add(d)), nil
	}
	if parts := dayAndTime.FindStringSubmatch(word); parts != nil {
		at, err := parseDayAndTime(parts[1], parts[2], cmp.Or(parts[3], "UTC"), now)
		if err != nil {
			return nil, err
		}
		return FormatSecond(at), nil
	}
	if parts := dateWithZone.FindStringSubmatch(word); parts != nil {
		at, err := parseInZone(parts[1], parts[2])
		if err != nil {
			return nil, err
		}
		return FormatSecond(at), nil
	}
	if word != "now" && (word == "" || word[0] < '0' || word[0] > '9') {
		return nil, cli.UsageError("%q is not a time such as %s", word, dateHelp)
	}
	return word, nil
}

var dayCount = regexp.MustCompile(`^(\d{1,5})d(.*)$`)

// parseDuration parses a duration in the format of time.ParseDuration, which may begin with days, for example
// 3d12h.
func parseDuration(word string) (time.Duration, error) {
	var whole time.Duration
	rest := word
	if parts := dayCount.FindStringSubmatch(word); parts != nil {
		n, _ := strconv.Atoi(parts[1])
		whole, rest = time.Duration(n)*24*time.Hour, parts[2]
		if rest == "" {
			return whole, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 {
		return 0, cli.UsageError("%q is not a duration such as 30s, 2h or 3d", word)
	}
	return whole + d, nil
}

// dateWithZone matches a date and a time, followed by a blank and a time zone: a name, an offset or Z.
var dateWithZone = regexp.MustCompile(`^(\d{4}-\d{1,2}-\d{1,2} \d{1,2}:\d{2}(?::\d{2})?) ([A-Za-z+-].*)$`)

// dayAndTime matches today or tomorrow, a time, and perhaps a time zone.
var dayAndTime = regexp.MustCompile(`^(today|tomorrow) (\d{1,2}:\d{2}(?::\d{2})?)(?: ([A-Za-z+-].*))?$`)

// parseDayAndTime converts a time of today or tomorrow to an instant. The day is the one of the time zone.
func parseDayAndTime(day, clock, zone string, now time.Time) (time.Time, error) {
	location, err := parseZone(zone)
	if err != nil {
		return time.Time{}, err
	}
	date := now.In(location)
	if day == "tomorrow" {
		date = date.AddDate(0, 0, 1)
	}
	return parseInZone(date.Format(time.DateOnly)+" "+clock, zone)
}

// parseInZone converts a local time in a time zone to an instant. When daylight saving time begins or ends,
// some local times do not exist and some exist twice; parseInZone returns an error for these local times.
func parseInZone(local, zone string) (time.Time, error) {
	form := "2006-1-2 15:04"
	if strings.Count(local, ":") == 2 {
		form += ":05"
	}
	location, err := parseZone(zone)
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.ParseInLocation(form, local, location)
	if err != nil {
		return at, cli.UsageError("%q is not a date and time such as 2030-01-31 10:00", local)
	}
	matches := 0
	for _, moved := range []time.Duration{-time.Hour, -30 * time.Minute, 0, 30 * time.Minute, time.Hour} {
		there, _ := time.Parse(form, at.Add(moved).Format(form))
		if meant, _ := time.Parse(form, local); there.Equal(meant) {
			matches++
		}
	}
	if matches != 1 {
		return at, cli.UsageError(
			"the clocks of %s change then, and the local time %q exists %d times: use an offset such as +02:00",
			zone, local, matches,
		)
	}
	return at, nil
}

// parseZone parses a time zone: a name or an offset.
func parseZone(name string) (*time.Location, error) {
	if offset, err := time.Parse("-07:00", name); err == nil {
		return offset.Location(), nil
	}
	if name == "Z" || name == "z" {
		return time.UTC, nil
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, cli.UsageError("%q is not a time zone such as UTC, Europe/Paris or +02:00", name)
	}
	return location, nil
}

// FormatSecond formats an instant for the API, truncated to the second.
func FormatSecond(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// endAfter returns the date that is `length` after the start, in one of the API's formats.
func endAfter(start any, length string, now time.Time) (string, error) {
	d, err := parseDuration(length)
	if err != nil {
		return "", err
	}
	word, _ := start.(string)
	at, err := parseStart(word, now)
	return FormatSecond(at.Add(d)), err
}

// parseStart converts a date in one of the API's formats to an instant.
func parseStart(word string, now time.Time) (time.Time, error) {
	if word == "now" {
		return now, nil
	}
	for _, form := range []string{time.RFC3339, "2006-1-2 15:4"} {
		if at, err := time.Parse(form, word); err == nil {
			return at, nil
		}
	}
	return now, cli.UsageError(
		"--for needs a --start such as now, +30s, \"2030-01-31 10:00\" (UTC) or 2030-01-31T10:00:00Z, not %q",
		word,
	)
}
