package mirrorstore

import "time"

// SetLockWait sets how long the runs of a store wait for each lock.
func SetLockWait(s *Store, wait time.Duration) { s.lockWait = wait }
