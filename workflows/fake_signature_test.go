package workflows_test

import (
	"reflect"
	"testing"

	"berth/activities"
)

// A local activity is called without a conversion to JSON, so a fake with another signature could hide a wrong argument.
func TestFakes_HaveSignaturesOfActivities(t *testing.T) {
	t.Parallel()
	functions := activities.New(activities.Options{}).Functions()
	for fake, fakes := range map[string]map[string]any{"fakeRows": (&fakeRows{}).functions(), "fakeLease": (&fakeLease{}).functions()} {
		for name, f := range fakes {
			if got, want := reflect.TypeOf(f), reflect.TypeOf(functions[name]); got != want {
				t.Errorf("%s: activity %s is %s, want %s", fake, name, got, want)
			}
		}
	}
}
