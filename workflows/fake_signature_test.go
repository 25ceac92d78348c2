package workflows_test

import (
	"reflect"
	"testing"

	"berth/activities"
)

// The test environment calls a local activity without converting its arguments to JSON. Therefore, a fake
// whose signature differs from the activity's signature could hide that a workflow passes a wrong argument.
func TestFakes_HaveSignaturesOfActivities(t *testing.T) {
	t.Parallel()
	functions := activities.New(activities.Options{}).Functions()
	for fake, fakes := range map[string]map[string]any{"fakeRows": (&fakeRows{}).functions(), "fakeLease": (&fakeLease{}).functions()} {
		for name, f := range fakes {
			if got, want := reflect.TypeOf(f), reflect.TypeOf(functions[name]); got != want {
				t.Errorf("%s: the fake of activity %s has the signature %s, want %s", fake, name, got, want)
			}
		}
	}
}
