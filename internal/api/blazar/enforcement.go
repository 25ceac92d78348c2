package blazar

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/lease"
)

// Check is a question about a lease to the external enforcement service, in the format of Blazar's external
// service filter.
type Check struct {
	What          string // check-create or check-update
	User, Project string
	Lease         any
	Current       any // the lease before an update
}

// checkNew asks the enforcement service whether the lease may be created. checkNew first plans the lease,
// because the request to the enforcement service contains the hosts that the lease would get.
func (b *handler) checkNew(r *http.Request, d lease.Draft) error {
	if b.Enforce == nil {
		return nil
	}
	l, err := b.Store.PlanLease(r.Context(), d, nil)
	if err != nil {
		return err
	}
	question, err := b.checkView(r.Context(), l)
	if err != nil {
		return err
	}
	return b.check(r, Check{What: "check-create", Lease: question})
}

// checkChange asks the enforcement service whether the lease may be changed.
func (b *handler) checkChange(r *http.Request, was lease.Lease, c lease.Change) error {
	is, err := b.Store.PlanUpdate(r.Context(), was.ID, c)
	if err != nil {
		return leaseNotFound(err, was.ID.String())
	}
	current, err := b.checkView(r.Context(), was)
	if err != nil {
		return err
	}
	question, err := b.checkView(r.Context(), is)
	if err != nil {
		return err
	}
	// delete unchanged values, because the request already contains them in current_lease
	for key := range question {
		if key != "start_date" && key != "end_date" && key != "reservations" &&
			question[key] == current[key] {
			delete(question, key)
		}
	}
	return b.check(r, Check{What: "check-update", Lease: question, Current: current})
}

func (b *handler) check(r *http.Request, c Check) error {
	caller := identity.From(r.Context())
	c.User, c.Project = caller.User, caller.Project
	refusal := ""
	err := osapi.WaitOutside(r.Context(), func() { refusal = b.Enforce(r.Context(), c) })
	if refusal != "" {
		return lease.Faultf(lease.InvalidInput, "%s", refusal)
	}
	return err
}

// allocationViews returns the JSON objects of all resources that a reservation can have, by ID.
func (b *handler) allocationViews(ctx context.Context) (map[string]any, error) {
	hosts, err := b.Store.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	for _, h := range hosts {
		all[strconv.FormatInt(h.ID, 10)] = hostViewOf(h)
	}
	for _, c := range resourceCollections {
		resources, err := b.Store.ReservableResources(ctx, c.typ)
		if err != nil {
			return nil, err
		}
		for _, r := range resources {
			all[r.ID.String()] = c.view(r)
		}
	}
	return all, nil
}

// checkView returns a lease, with the hosts, network segments and devices of its reservations, in the format
// of the enforcement service.
func (b *handler) checkView(ctx context.Context, l lease.Lease) (map[string]any, error) {
	byID, err := b.allocationViews(ctx)
	if err != nil {
		return nil, err
	}
	reservations := []any{}
	for _, res := range l.Reservations {
		allocations := []any{}
		for _, id := range res.Hosts {
			allocations = append(allocations, byID[strconv.FormatInt(id, 10)])
		}
		for _, id := range res.ResourceIDs {
			allocations = append(allocations, byID[id.String()])
		}
		view, err := toMap(reservationViewOf(l.ID.String(), res))
		if err != nil {
			return nil, err
		}
		view["allocations"] = allocations
		reservations = append(reservations, view)
	}
	question := map[string]any{
		"id":           l.ID.String(),
		"name":         l.Name,
		"user_id":      l.User,
		"project_id":   l.Project,
		"start_date":   plain(l.StartAt),
		"end_date":     plain(l.EndAt),
		"reservations": reservations,
	}
	for _, e := range l.Events {
		if e.Type == lease.BeforeEndLease {
			question["before_end_date"] = plain(e.At)
		}
	}
	return question, nil
}

// toMap converts a view to a map: it encodes the view as JSON and decodes the JSON into the map.
func toMap(view any) (o map[string]any, err error) {
	raw, err := json.Marshal(view)
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	return o, err
}

// plain formats a date without a time zone. If the fraction of a second is zero, plain omits the fraction.
func plain(t time.Time) string { return strings.TrimSuffix(date(t), ".000000") }
