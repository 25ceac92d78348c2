package osapi

import (
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// tokenBuckets has a token bucket for each caller that has sent a request lately. The zero value is ready to
// use.
type tokenBuckets struct {
	mutex   sync.Mutex
	byName  map[string]*rate.Limiter
	cleaned time.Time // the time of the last removal of full buckets
}

// take takes a token from the bucket with the given name. If the bucket is empty, take returns the time until
// the next token.
func (b *tokenBuckets) take(name string, perSecond float64, burst int, now time.Time) time.Duration {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	reservation := b.bucket(name, perSecond, burst, now).ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// maxCharge is the maximum number of full buckets that charge takes at once.
const maxCharge = 10

// charge takes tokens, but at most maxCharge full buckets, from the bucket with the given name, also if the
// bucket has fewer: the next token is then due later.
func (b *tokenBuckets) charge(name string, perSecond float64, burst, tokens int, now time.Time) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	bucket := b.bucket(name, perSecond, burst, now)
	for left := min(tokens, maxCharge*burst); left > 0; left -= burst {
		bucket.ReserveN(now, min(left, burst)) // a reservation has at most a full bucket
	}
}

// bucket returns the bucket with the given name, which is full if the caller has sent no request lately.
func (b *tokenBuckets) bucket(name string, perSecond float64, burst int, now time.Time) *rate.Limiter {
	b.forgetIdle(perSecond, burst, now)
	bucket := b.byName[name]
	if bucket == nil {
		bucket = rate.NewLimiter(rate.Limit(perSecond), burst)
		b.byName[name] = bucket
	}
	return bucket
}

// forgetIdle removes the buckets that are full again, because a full bucket is equal to a new one. It does so
// at most once in the time in which an empty bucket becomes full, so the memory contains only callers that
// sent a request in twice this time.
func (b *tokenBuckets) forgetIdle(perSecond float64, burst int, now time.Time) {
	refill := time.Duration(float64(burst) / perSecond * float64(time.Second))
	if b.byName != nil && now.Sub(b.cleaned) < refill {
		return
	}
	if b.byName == nil {
		b.byName = map[string]*rate.Limiter{}
	}
	for name, bucket := range b.byName {
		if bucket.TokensAt(now) >= float64(burst) {
			delete(b.byName, name)
		}
	}
	b.cleaned = now
}

// tooFast returns a 429 with the time to wait until the next token.
func tooFast(who string, perSecond float64, wait time.Duration) *Error {
	return Fault(
		http.StatusTooManyRequests, "", "%s more than %g requests per second. Try again later.",
		who, perSecond,
	).RetryIn(int(math.Ceil(wait.Seconds())))
}
