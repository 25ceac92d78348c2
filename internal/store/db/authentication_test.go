package db_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

func TestAuthentication_FirstProcessBindsTheDatabase(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	if found, err := db.ReadAuthentication(t.Context(), url); err != nil || found != (db.Authentication{}) {
		t.Errorf("authentication of a new database: got %+v, error %v, want none", found, err)
	}
	var bound, refused atomic.Int32
	var processes sync.WaitGroup
	for _, mode := range []string{"keystone", "noauth", "keystone", "noauth", "keystone", "noauth"} {
		processes.Go(func() {
			switch err := db.BindAuthentication(t.Context(), url, mode); {
			case err == nil:
				bound.Add(1)
			case errors.Is(err, db.ErrOtherAuthentication) && strings.Contains(err.Error(), "`starter authentication set "+mode+"`"):
				refused.Add(1)
			default:
				t.Errorf(
					"bind the database to %s: got error %v, want none or ErrOtherAuthentication with the command that changes the database",
					mode,
					err,
				)
			}
		})
	}
	processes.Wait()
	if b, r := bound.Load(), refused.Load(); b != 3 || r != 3 {
		t.Errorf(
			"six processes with two modes start at the same time: got %d bound and %d refused, want 3 of one mode bound and 3 refused",
			b,
			r,
		)
	}
}

func TestAuthentication_ChangesOnPurpose(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	if err := db.BindAuthentication(t.Context(), url, "noauth"); err != nil {
		t.Fatal(err)
	}
	first, err := db.ReadAuthentication(t.Context(), url)
	if err != nil || first.Mode != "noauth" || first.SetAt.IsZero() {
		t.Fatalf("authentication after the first process: got %+v, error %v, want noauth", first, err)
	}
	for _, mode := range []string{"noauth", "keystone"} {
		if before, err := db.SetAuthentication(t.Context(), url, mode); err != nil || before != first {
			t.Errorf("set %s: got the value before %+v, error %v, want %+v", mode, before, err, first)
		}
	}
	changed, err := db.ReadAuthentication(t.Context(), url)
	if err != nil || changed.Mode != "keystone" || !changed.SetAt.After(first.SetAt) {
		t.Errorf(
			"authentication after the change: got %+v, error %v, want keystone with a later time than %s",
			changed, err, first.SetAt,
		)
	}
	if _, err := db.SetAuthentication(t.Context(), url, "none"); err == nil {
		t.Error("set an unknown mode: got no error, want one")
	}
	if err := db.BindAuthentication(t.Context(), url, "noauth"); !errors.Is(err, db.ErrOtherAuthentication) {
		t.Errorf("process with the mode before the change: got error %v, want ErrOtherAuthentication", err)
	}
}
