package lease

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"
)

// usageAt returns the usage of a host at one time.
func usageAt(uses []ResourceUsage, t time.Time) map[string]int64 {
	sum := map[string]int64{}
	for _, u := range uses {
		if !u.From.After(t) && u.To.After(t) {
			for class, n := range u.Resources {
				sum[class] += n * int64(u.Slots)
			}
		}
	}
	return sum
}

func TestPeakUsage_IsTheMaximumOfAllTimesOfTheWindow(t *testing.T) {
	t.Parallel()
	const hours = 12
	hour := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }
	for range 2000 {
		var uses []ResourceUsage
		for range rand.IntN(8) {
			begin := rand.IntN(hours) - 2
			uses = append(uses, ResourceUsage{
				From:  hour(begin),
				To:    hour(begin + 1 + rand.IntN(6)),
				Slots: 1 + rand.IntN(3),
				Resources: map[string]int64{
					[]string{"VCPU", "MEMORY_MB"}[rand.IntN(2)]: int64(1 + rand.IntN(4)),
					"DISK_GB": 1,
				},
			})
		}
		want := map[string]int64{}
		for n := range hours - 4 {
			for class, used := range usageAt(uses, hour(n)) {
				want[class] = max(want[class], used)
			}
		}
		if got := PeakUsage(uses, hour(0), hour(hours-4)); !maps.Equal(got, want) {
			t.Fatalf("peak usage of %+v: got %v, want %v", uses, got, want)
		}
	}
}

func TestPeakUsage_OfManyReservationsIsFast(t *testing.T) {
	t.Parallel()
	uses := make([]ResourceUsage, 30_000)
	for i := range uses {
		from := noon.Add(time.Duration(i) * time.Minute)
		uses[i] = ResourceUsage{
			From:      from,
			To:        from.Add(10_000 * time.Hour),
			Slots:     1,
			Resources: map[string]int64{"VCPU": 1, "MEMORY_MB": 512},
		}
	}
	begin := time.Now()
	if got := PeakUsage(uses, noon, noon.Add(1000*time.Hour))["VCPU"]; got != 30_000 {
		t.Errorf("peak usage of 30,000 reservations: got %d VCPUs, want 30000", got)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("peak usage of 30,000 reservations took %s, want far less than 10 s", took)
	}
}
