package workflows_test

import (
	"reflect"
	"testing"

	"berth/activities"
)

// A local activity is called without a detour through JSON, so a stand-in of another signature hides a mistake
// or invents one.
func TestWorldsHaveTheSignaturesOfTheActivities(t *testing.T) {
	t.Parallel()
	real := reflect.TypeFor[*activities.Activities]()
	for _, standIn := range []reflect.Type{reflect.TypeFor[*world](), reflect.TypeFor[*leaseWorld]()} {
		for i := range standIn.NumMethod() {
			m := standIn.Method(i)
			r, ok := real.MethodByName(m.Name)
			if !ok {
				t.Errorf("%s has %s, which is no activity", standIn, m.Name)
				continue
			}
			if got, want := signature(m), signature(r); got != want {
				t.Errorf("%s.%s is %s, the activity is %s", standIn, m.Name, got, want)
			}
		}
	}
}

func signature(m reflect.Method) string {
	s := ""
	for i := 1; i < m.Type.NumIn(); i++ {
		s += m.Type.In(i).String() + " "
	}
	for i := range m.Type.NumOut() {
		s += "→ " + m.Type.Out(i).String() + " "
	}
	return s
}
