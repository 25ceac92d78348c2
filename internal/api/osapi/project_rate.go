package osapi

import (
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"berth/internal/identity"
)

// ProjectRate limits the number of requests of each project with a token bucket. All APIs of a process share one ProjectRate. A nil
// ProjectRate limits nothing.
type ProjectRate struct {
	PerSecond float64             // requests per second of one project, in the long run
	Burst     int                 // requests that a project may send at once
	Now       func() time.Time    // the clock
	Refused   func(prefix string) // is called for each refused request, with the prefix of the API

	mutex   sync.Mutex
	buckets map[string]*rate.Limiter
	cleaned time.Time // the time of the last removal of full buckets
}

// check returns a 429 if the project of the caller has no request left. Administrators, services and agents with a token of their host are
// exempt.
func (l *ProjectRate) check(c identity.Caller, prefix string) error {
	if l == nil || c.AdminOrService() || c.AgentHost != "" {
		return nil
	}
	wait := l.takeToken(c)
	if wait == 0 {
		return nil
	}
	l.Refused(prefix)
	e := Fault(http.StatusTooManyRequests, "", "The project sends more than %g requests per second. Try again later.", l.PerSecond)
	e.RetryAfter = int(math.Ceil(wait.Seconds()))
	return e
}

// takeToken takes a token from the bucket of the caller's project. If the bucket is empty, takeToken returns the time until the next token.
// A caller without a project has a bucket of its own.
func (l *ProjectRate) takeToken(c identity.Caller) time.Duration {
	name := "project " + c.Project
	if c.Project == "" {
		name = "user " + c.User
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := l.Now()
	l.forgetIdle(now)
	bucket := l.buckets[name]
	if bucket == nil {
		bucket = rate.NewLimiter(rate.Limit(l.PerSecond), l.Burst)
		l.buckets[name] = bucket
	}
	reservation := bucket.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// forgetIdle removes the buckets that are full again, because a full bucket is equal to a new one. It does so at most once in the time in
// which an empty bucket becomes full, so the memory contains only projects that sent a request in twice this time.
func (l *ProjectRate) forgetIdle(now time.Time) {
	refill := time.Duration(float64(l.Burst) / l.PerSecond * float64(time.Second))
	if l.buckets != nil && now.Sub(l.cleaned) < refill {
		return
	}
	if l.buckets == nil {
		l.buckets = map[string]*rate.Limiter{}
	}
	for name, bucket := range l.buckets {
		if bucket.TokensAt(now) >= float64(l.Burst) {
			delete(l.buckets, name)
		}
	}
	l.cleaned = now
}
