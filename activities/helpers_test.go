package activities_test

import (
	"time"

	"berth/activities"
	"berth/internal/odl"
)

// newActivities returns activities whose time limits cannot be reached in a test, even on a slow machine. A
// test of a time limit sets the field of the limit in Timeouts.
func newActivities(o activities.Options) *activities.Activities {
	o.Timeouts = activities.Timeouts{
		ShortCall:  time.Hour,
		LongCall:   3 * time.Hour,
		CloudCall:  time.Hour,
		Round:      time.Hour,
		Record:     time.Hour,
		LoadLeases: time.Hour,
		Advance:    time.Hour,
		Drain:      time.Hour,
		Trim:       time.Hour,
	}
	return activities.New(o)
}

// newClient returns a client of the controller with the given URL. The timeouts of the client cannot be
// reached in a test.
func newClient(url string) (*odl.Client, error) {
	return odl.New(odl.Config{URL: url, Timeout: time.Hour, SharedTimeout: time.Hour})
}
