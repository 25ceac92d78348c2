package demo

import (
	"strings"
	"testing"
	"time"
)

func TestCheckDelay_ComparesTheTimesOfTheDatabase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ due, done, failure string }{
		"on time":           {"2030-01-01T00:00:00.000000", "2030-01-01 00:00:00.012345", ""},
		"without fraction":  {"2030-01-01T00:00:00.000000", "2030-01-01 00:00:00", ""},
		"busy machine":      {"2030-01-01T00:00:00.000000", "2030-01-01 00:00:01.5", ""},
		"too early":         {"2030-01-01T00:00:01.000000", "2030-01-01 00:00:00.999", "due at 00:00:01"},
		"too late":          {"2030-01-01T00:00:00.000000", "2030-01-01 00:00:15.5", "done 15.5s later"},
		"due is not a time": {"soon", "2030-01-01 00:00:01.5", "soon"},
		"not done":          {"2030-01-01T00:00:00.000000", "<nil>", "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &demonstration{writer: t.Output(), started: time.Now()}
			err := d.checkDelay(leaseView{
				due:     map[string]string{"end_lease": c.due},
				updated: map[string]string{"end_lease": c.done},
			}, "end_lease")
			if (err == nil) != (c.failure == "") || err != nil && !strings.Contains(err.Error(), c.failure) {
				t.Error(err)
			}
		})
	}
}
