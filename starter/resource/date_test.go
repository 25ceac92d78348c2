package resource

import (
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
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			if got, err := parseInstant(word, now); err != nil || got != want {
				t.Errorf("parse the date: got %v, error %v; want %v", got, err, want)
			}
		})
	}
}
