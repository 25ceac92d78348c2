package osapi

import (
	"context"
	"time"

	"berth/internal/identity"
	"berth/internal/store/db"
)

// ProjectRate limits the number of requests of each project with a token bucket. All APIs of a process share
// one ProjectRate. A nil ProjectRate limits nothing.
type ProjectRate struct {
	PerSecond float64             // requests per second of one project, in the long run
	Burst     int                 // requests that a project may send at once
	Now       func() time.Time    // the clock
	Refused   func(prefix string) // is called for each refused request, with the prefix of the API

	buckets tokenBuckets
}

// check returns a 429 if the project of the caller has no request left.
func (l *ProjectRate) check(c identity.Caller, prefix string) error {
	if l == nil || !l.limits(c) {
		return nil
	}
	wait := l.buckets.take(ProjectName(c), l.PerSecond, l.Burst, l.Now())
	if wait == 0 {
		return nil
	}
	l.Refused(prefix)
	return tooFast("The project sends", l.PerSecond, wait)
}

// countWrites returns a context that counts what a request writes. The caller must call charge after the
// request: it counts a request that has written several objects once for each of them, without a delay, so
// that the project must wait longer before its next requests. A small request can write all ports of a
// network.
func (l *ProjectRate) countWrites(ctx context.Context) (_ context.Context, charge func()) {
	c := identity.From(ctx)
	if l == nil || !l.limits(c) {
		return ctx, func() {}
	}
	ctx, changed := db.WithChangeCount(ctx)
	return ctx, func() {
		if objects := changed.Objects(); objects > 1 {
			l.buckets.charge(ProjectName(c), l.PerSecond, l.Burst, objects-1, l.Now())
		}
	}
}

// limits reports whether the caller is neither an administrator nor a service nor an agent with a token of
// its host, for which there is HostRate.
func (l *ProjectRate) limits(c identity.Caller) bool { return !c.AdminOrService() && c.AgentHost == "" }

// ProjectName returns the name under which the project of a caller counts for limits. A caller without a
// project counts as a project of its own.
func ProjectName(c identity.Caller) string {
	if c.Project == "" {
		return "user " + c.User
	}
	return db.ClientOfProject(c.Project)
}

// HostRate limits the number of requests of the agents of each host with a token bucket. It concerns only
// callers with a token of their host. A nil HostRate limits nothing.
type HostRate struct {
	PerSecond float64             // requests per second of one host, in the long run
	Burst     int                 // requests that the agents of a host may send at once
	Now       func() time.Time    // the clock
	Refused   func(prefix string) // is called for each refused request, with the prefix of the API

	buckets tokenBuckets
}

// check returns a 429 if the host of the caller has no request left.
func (l *HostRate) check(c identity.Caller, prefix string) error {
	if l == nil || c.AgentHost == "" {
		return nil
	}
	wait := l.buckets.take(c.AgentHost, l.PerSecond, l.Burst, l.Now())
	if wait == 0 {
		return nil
	}
	l.Refused(prefix)
	return tooFast("The agents of the host send", l.PerSecond, wait)
}

// Charge counts a request of an agent as several further requests, without a delay: the agents of its host
// must wait longer before the next ones.
func (l *HostRate) Charge(c identity.Caller, requests int) {
	if l != nil && c.AgentHost != "" && requests > 0 {
		l.buckets.charge(c.AgentHost, l.PerSecond, l.Burst, requests, l.Now())
	}
}
