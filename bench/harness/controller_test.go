package harness

import (
	"testing"

	"berth/internal/odl/odltest"
)

func TestControllerObjects_CheckFindsMissingAndRepeatedObjects(t *testing.T) {
	t.Parallel()
	object := func(creates int, has map[string]any) odltest.Record {
		return odltest.Record{
			Type:    "port",
			ID:      "1",
			Object:  has,
			Creates: creates,
		}
	}
	present := map[string]any{}
	for name, c := range map[string]struct {
		objects controllerObjects
		created int
		ok      bool
	}{
		"complete":     {controllerObjects{Objects: []odltest.Record{object(1, present)}}, 1, true},
		"one missing":  {controllerObjects{Objects: []odltest.Record{object(1, present)}}, 2, false},
		"twice":        {controllerObjects{Objects: []odltest.Record{object(2, present)}}, 1, false},
		"deleted":      {controllerObjects{Objects: []odltest.Record{object(1, nil)}}, 1, false},
		"out of order": {controllerObjects{Objects: []odltest.Record{object(1, present)}, Violations: []string{"port before its network"}}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := c.objects.check(c.created); (err == nil) != c.ok {
				t.Error(err)
			}
		})
	}
}
