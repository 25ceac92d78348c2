package resource

import (
	"strings"
	"testing"
	"time"
)

func TestParseInstant(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 600_000_000, time.FixedZone("", 3600))
	for word, want := range map[string]any{
		"now":                  "now",
		"2030-01-31 10:00":     "2030-01-31 10:00",
		"2030-01-31T10:00:00Z": "2030-01-31T10:00:00Z",
		"+30s":                 "2030-01-02T02:04:35Z",
		"+2h":                  "2030-01-02T04:04:05Z",
		// it is 02:04 in UTC, and still January 1st in New York
		"today 09:00":                     "2030-01-02T09:00:00Z",
		"tomorrow 09:00":                  "2030-01-03T09:00:00Z",
		"tomorrow 9:00:30 +02:00":         "2030-01-03T07:00:30Z",
		"tomorrow 09:00 Europe/Paris":     "2030-01-03T08:00:00Z",
		"tomorrow 09:00 America/New_York": "2030-01-02T14:00:00Z",
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			if got, err := parseInstant(word, now); err != nil || got != want {
				t.Errorf("parse the date: got %v, error %v; want %v", got, err, want)
			}
		})
	}
}

func TestParseInstant_RefusesADayWithoutATimeThatExists(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 3, 30, 12, 0, 0, 0, time.UTC)
	for word, want := range map[string]string{
		"tomorrow":                    `"tomorrow" is not a time such as now`,
		"tomorrow noon":               `"tomorrow noon" is not a time such as now`,
		"tomorrow 25:00":              "is not a date and time",
		"tomorrow 09:00 Mars":         `"Mars" is not a time zone`,
		"tomorrow 02:30 Europe/Paris": "the clocks of Europe/Paris change then",
	} {
		if got, err := parseInstant(word, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parse %q: got %v, error %v; want an error with %q", word, got, err, want)
		}
	}
}
