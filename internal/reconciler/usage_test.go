package reconciler

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/store/outbox"
	"berth/internal/store/storetest"
)

func TestRepairUsage_SavesWhatItCorrected(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	var corrected []string
	var failure error
	r := New(Options{
		DB:      s.DB,
		Store:   s.Outbox,
		Metrics: prometheus.NewRegistry(),
		RepairUsage: func(context.Context) (int64, []string, error) {
			return 9, corrected, failure
		},
	})
	check := func(pause time.Duration, different int64, examples ...string) {
		t.Helper()
		got, err := r.repairUsage(t.Context())
		if !errors.Is(err, failure) || got < pause {
			t.Errorf("compare the usage: got a pause of %s, error %v; want at least %s, error %v",
				got, err, pause, failure)
		}
		saved, err := s.Outbox.Projections(t.Context())
		if err != nil || len(saved) != 3 || saved[2].ComparedAt == nil {
			t.Fatalf("saved comparisons: got %+v, error %v; want three, of which the third has a time",
				saved, err)
		}
		want := outbox.Projection{
			Name:      outbox.Usage,
			Compared:  9,
			Different: different,
			Examples:  examples,
		}
		if d := cmp.Diff(want, saved[2], cmpopts.IgnoreFields(outbox.Projection{}, "ComparedAt"), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("saved comparison of the usage (-want +got):\n%s", d)
		}
	}

	check(usageInterval, 0)
	corrected = []string{"VCPU of provider u1", "DISK_GB of provider u1"}
	check(repeatedInterval, 2, corrected...)
	failure = errors.New("no database")
	check(usageInterval, 2, corrected...)
}
