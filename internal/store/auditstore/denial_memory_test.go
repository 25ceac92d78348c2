package auditstore_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"berth/internal/auditlog"
	"berth/internal/store/auditstore"
)

// A client chooses the method of a refused request and the object in its path.
func TestAudit_WaitingDenialsHoldNoLongTexts(t *testing.T) {
	s := auditstore.New(nil)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range 500 {
		s.Deny(auditlog.Record{
			At:       time.Now(),
			Outcome:  auditlog.Denied,
			Method:   strings.Repeat("A", 32<<10),
			ObjectID: strings.Repeat("x", 32<<10),
		}, "192.0.2.1")
	}
	if grown := int64(heap()) - int64(before); grown > 4<<20 {
		t.Errorf("500 refused requests with long texts wait: got %d kB of memory, want at most 4 MB", grown>>10)
	}
	runtime.KeepAlive(s)
}
