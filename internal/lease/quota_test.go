package lease

import "testing"

func TestQuota_LimitsEachResource(t *testing.T) {
	t.Parallel()
	draft := func(reservations int) Draft {
		return Draft{Project: "p", Reservations: make([]ReservationDraft, reservations)}
	}
	full := QuotaUsage{Leases: 3, Reservations: 10}
	for _, c := range []struct {
		name    string
		quota   Quota
		draft   Draft
		used    QuotaUsage
		allowed bool
	}{
		{"no quota", Quota{}, draft(100), full, true},
		{"the last lease", Quota{Limits: map[string]int64{QuotaLeases: 4}}, draft(100), full, true},
		{"one lease too many", Quota{Limits: map[string]int64{QuotaLeases: 3}}, draft(0), full, false},
		{"no lease at all", Quota{Limits: map[string]int64{QuotaLeases: 0}}, draft(0), QuotaUsage{}, false},
		{"the last reservations", Quota{Limits: map[string]int64{QuotaReservations: 12}}, draft(2), full, true},
		{"one reservation too many", Quota{Limits: map[string]int64{QuotaReservations: 12}}, draft(3), full, false},
		{"the largest lease", Quota{Limits: map[string]int64{QuotaReservationsPerLease: 2}}, draft(2), full, true},
		{"a lease that is too large", Quota{Limits: map[string]int64{QuotaReservationsPerLease: 2}}, draft(3), full, false},
		{"unlimited", Quota{Limits: map[string]int64{QuotaLeases: -1, QuotaReservations: -1, QuotaReservationsPerLease: -1}}, draft(100), full, true},
		{"an exempt project", Quota{map[string]int64{QuotaLeases: 0, QuotaReservations: 0, QuotaReservationsPerLease: 0}, []string{"q", "p"}}, draft(1), full, true},
		{"another exempt project", Quota{map[string]int64{QuotaLeases: 0}, []string{"q"}}, draft(1), full, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := c.quota.CheckDraft(c.draft, c.used)
			if c.allowed && err != nil || !c.allowed && kindOf(err) != QuotaExceeded {
				t.Errorf("check the draft of a lease: got error %v, want none: %t", err, c.allowed)
			}
		})
	}
}
