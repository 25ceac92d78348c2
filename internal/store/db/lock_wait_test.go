package db_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

func TestLockHolders_NameTheSessionForWhichOthersWait(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	holder, waiter := storetest.NewRival(t, url), storetest.NewRival(t, url)
	list := func(atLeast time.Duration) []db.LockHolder {
		t.Helper()
		all, err := db.LockHolders(t.Context(), url, atLeast)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	holder.Do(`begin`)
	holder.Do(`lock table port`)
	ended := make(chan error, 1)
	go func() {
		_, err := waiter.DB.Exec(t.Context(), `delete from port`)
		ended <- err
	}()
	holder.AwaitWaiter()

	var got []db.LockHolder
	for len(got) == 0 { // PostgreSQL stores the time at which a wait began after its begin
		got = list(0)
	}

	want := []db.LockHolder{{
		PID:     int32(holder.DB.PgConn().PID()),
		User:    holder.DB.Config().User,
		State:   "idle in transaction",
		Waiting: 1,
		Tables:  []string{"port"},
	}}
	if got[0].For <= 0 || got[0].Longest <= 0 || got[0].For < got[0].Longest {
		t.Errorf("durations of the transaction and of the wait: got %s and %s, want positive ones, the wait not longer",
			got[0].For, got[0].Longest)
	}
	got[0].For, got[0].Longest = 0, 0
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("sessions that hold locks (-want +got):\n%s", d)
	}
	if got := list(time.Hour); len(got) > 0 {
		t.Errorf("sessions that have held locks for an hour: got %v, want none", got)
	}
	holder.Do(`commit`)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := list(0); len(got) > 0 {
		t.Errorf("sessions that hold locks after the wait: got %v, want none", got)
	}
}
