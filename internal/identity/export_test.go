package identity

import "time"

// SetClock lets a test agree with its Keystone about the time.
func (k *Keystone) SetClock(now func() time.Time) { k.now = now }

// Remembered counts the verdicts in memory.
func (k *Keystone) Remembered() int { return len(k.valid.known) + len(k.invalid.known) }

// SetLimit bounds either kind of verdict.
func (k *Keystone) SetLimit(n int) { k.valid.limit, k.invalid.limit = n, n }
