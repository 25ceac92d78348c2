package activities

import (
	"cmp"
	"time"
)

// Default time limits of the calls that one attempt makes to another service. They are shorter than the
// attempt's own timeout.
const (
	ShortCallTimeout = 3 * time.Second
	LongCallTimeout  = 12 * time.Second
	CloudCallTimeout = 90 * time.Second
)

// Timeouts are the time limits within the activities. A field that is 0 stands for the default in
// withDefaults.
type Timeouts struct {
	// ShortCall limits the calls of one short attempt to another service.
	ShortCall time.Duration
	// LongCall limits the calls of one attempt of a regular activity to another service.
	LongCall time.Duration
	// CloudCall limits the calls of one attempt for one reservation, which may have hundreds of hosts.
	CloudCall time.Duration
	// Round limits the Nova and Neutron calls for leases that one round advances together, because a call
	// that hangs delays the other leases of the round.
	Round time.Duration
	// Record limits the SQL statements that record the result of a call. The sum of ShortCall and Record must
	// be less than workflows.SingleAttemptTimeout.
	Record time.Duration
	// LoadLeases is the maximum duration of the queries that read several leases for concurrent callers.
	// LoadLeases must be shorter than workflows.LocalDatabaseTimeout.
	LoadLeases time.Duration
	// Advance is how long AdvanceLeases waits until the due leases have been advanced, that is, started or
	// ended. Advance must be shorter than workflows.LocalDatabaseTimeout.
	Advance time.Duration
	// Expire limits the part of a round of AdvanceLeases that expires leases, because the leases of a project
	// can make this part slow, and other projects' leases start after it.
	Expire time.Duration
	// Drain is the time that one attempt of an activity spends on the journal backlog, after which Temporal
	// retries the activity. Drain must leave time for one more batch before LongCall ends the attempt.
	Drain time.Duration
	// Trim is the maximum time that one call to Sweep spends on the deletion of each kind of rows.
	Trim time.Duration
	// Leftovers is the time after which one call to HealReservations begins no further removal of what ended
	// leases may have left. Leftovers must be a small part of workflows.LongRunningTimeout, because a removal
	// takes up to LongCall, and a project can make the removal of its reservations slow.
	Leftovers time.Duration
}

func (t Timeouts) withDefaults() Timeouts {
	return Timeouts{
		ShortCall:  cmp.Or(t.ShortCall, ShortCallTimeout),
		LongCall:   cmp.Or(t.LongCall, LongCallTimeout),
		CloudCall:  cmp.Or(t.CloudCall, CloudCallTimeout),
		Round:      cmp.Or(t.Round, 3*time.Second),
		Record:     cmp.Or(t.Record, 700*time.Millisecond),
		LoadLeases: cmp.Or(t.LoadLeases, 4*time.Second),
		Advance:    cmp.Or(t.Advance, 2*time.Second),
		Expire:     cmp.Or(t.Expire, 3*time.Second),
		Drain:      cmp.Or(t.Drain, LongCallTimeout-2*ShortCallTimeout),
		Trim:       cmp.Or(t.Trim, 4*time.Second),
		Leftovers:  cmp.Or(t.Leftovers, time.Minute),
	}
}
