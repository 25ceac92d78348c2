package activities

import (
	"errors"
	"testing"
)

// TestWhoComesLateIsLookedForOnceMore: a sweep that finds nothing more may have looked before somebody's time.
func TestWhoComesLateIsLookedForOnceMore(t *testing.T) {
	t.Parallel()
	s, looks, going := &sweeps{}, make(chan int), make(chan struct{})
	advance := func() (begun, finished int, err error) {
		going <- struct{}{}
		n := <-looks
		return n, n, nil
	}

	first := s.join(advance)
	<-going
	second := s.join(advance) // which has looked already
	looks <- 0
	<-going
	looks <- 2
	<-going
	if n, err := s.result(second); n != 2 || err != nil {
		t.Errorf("so far %d, %v", n, err)
	}
	looks <- 0
	<-first.over
	tries := 0
	third := s.join(func() (begun, finished int, err error) {
		if tries++; tries > 1 {
			return 0, 0, nil
		}
		return 1, 0, errors.New("the database is away")
	})
	<-third.over

	if n, err := s.result(second); first != second || n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := s.result(third); third == first || err == nil {
		t.Error("an error ends no sweep")
	}
}
