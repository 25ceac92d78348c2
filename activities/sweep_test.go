package activities

import (
	"testing"
	"time"
)

// More rows than one batch can become old between two sweeps.
func TestSweep_DeletesBatchesUntilNoneIsLeft(t *testing.T) {
	t.Parallel()
	a := &Activities{Options: Options{Timeouts: Timeouts{Trim: time.Hour}}}
	left, calls := int64(2*trimBatch+1), 0
	deleted, err := a.trimBatches(func() (int64, error) {
		calls++
		n := min(left, trimBatch)
		left -= n
		return n, nil
	})
	if err != nil || deleted != 2*trimBatch+1 || calls != 3 {
		t.Errorf("delete rows of two batches and one more: got %d deleted in %d calls, error %v", deleted, calls, err)
	}
}
