package blazar

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/lease"
	"berth/internal/text"
)

// object is a JSON object of a request. Each method of object reads one field, so that an error can name the
// field that is wrong.
type object map[string]json.RawMessage

// body reads the request's body, which must be a JSON object with at most maxParameters fields.
func body(r *http.Request) (object, error) {
	raw, err := osapi.Body(r)
	if e, ok := errors.AsType[*osapi.Error](err); ok {
		e.Type = framework
		return nil, e
	}
	if err := osapi.CheckJSON(raw); err != nil {
		return nil, osapi.Fault(http.StatusBadRequest, framework, "Malformed JSON: %s.", err)
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		return nil, lease.Faultf(lease.InvalidInput, "The request body must be a JSON object.")
	}
	if len(o) > maxParameters {
		return nil, lease.Faultf(lease.InvalidInput,
			"The request body has %d parameters, more than %d.", len(o), maxParameters)
	}
	return o, nil
}

// only returns an error if the object has a field that is not in `names`.
func (o object) only(names ...string) error {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(names, name) {
			return lease.Faultf(lease.InvalidInput, "Unknown parameter %s", excerpt(name))
		}
	}
	return nil
}

// need returns an error if the object lacks one of the fields in `names`.
func (o object) need(names ...string) error {
	var lacking []string
	for _, name := range names {
		if !o.has(name) {
			lacking = append(lacking, name)
		}
	}
	if len(lacking) > 0 {
		return lease.Faultf(lease.MissingParameter, "Missing parameter %s", strings.Join(lacking, ","))
	}
	return nil
}

// has reports whether the field exists and is not null.
func (o object) has(name string) bool {
	raw, ok := o[name]
	return ok && !bytes.Equal(raw, []byte("null"))
}

// text reads a field that must be a string.
func (o object) text(name string) (string, error) {
	var s *string
	if json.Unmarshal(o[name], &s) != nil || s == nil {
		return "", lease.Faultf(lease.MalformedParameter,
			"Malformed parameter %s: it must be a string.", name)
	}
	return *s, nil
}

// number reads a field that must be an integer or a string of digits.
func (o object) number(name string) (int, error) {
	text := string(o[name])
	var s string
	if json.Unmarshal(o[name], &s) == nil && strings.HasPrefix(text, `"`) {
		text = s
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > math.MaxInt32 || n < math.MinInt32 {
		return 0, lease.Faultf(lease.MalformedParameter,
			"Malformed parameter %s: it must be an integer.", name)
	}
	return int(n), nil
}

// date reads a field that must be a date or "now". If the value of the field is not a string, the error
// contains the JSON text of the value.
func (o object) date(name string) (lease.RequestedDate, error) {
	s, err := o.text(name)
	if err != nil {
		return lease.RequestedDate{}, invalidDate(string(o[name]))
	}
	return moment(s)
}

// Limits of a request.
const (
	maxObjects    = 100 // items in a list of objects: the maximum number of reservations of a lease
	maxAddresses  = 1000
	maxParameters = 1000 // fields of the body, which include the extra capabilities of a host
)

// checkLength refuses a list that has more items than `limit`.
func checkLength(name string, items, limit int) error {
	if items > limit {
		return lease.Faultf(lease.MalformedParameter,
			"Malformed parameter %s: it has %d items, more than %d.", name, items, limit)
	}
	return nil
}

// list reads a field that must be an array of objects. If the field is missing, list returns nil. list
// refuses an array of more than maxObjects items.
func (o object) list(name string) ([]object, error) {
	if !o.has(name) {
		return nil, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(o[name], &items); err == nil {
		if err := checkLength(name, len(items), maxObjects); err != nil {
			return nil, err
		}
	}
	var all []object
	if err := json.Unmarshal(o[name], &all); err != nil ||
		slices.ContainsFunc(all, func(o object) bool { return o == nil }) {
		return nil, lease.Faultf(lease.MalformedParameter,
			"Malformed parameter %s: it must be a list of objects.", name)
	}
	return all, nil
}

// excerpt shortens a text from the client for an error message.
func excerpt(s string) string { return text.Excerpt(s, 100) }

// draftOf reads the body of POST /leases.
func (b *handler) draftOf(r *http.Request, o object) (d lease.Draft, err error) {
	c := identity.From(r.Context())
	d.User, d.Project = c.User, c.Project
	if err := o.only("name", "start_date", "end_date", "before_end_date", "reservations", "events"); err != nil {
		return d, err
	}
	if err := o.need("name", "start_date", "end_date"); err != nil {
		return d, err
	}
	if d.Name, err = o.text("name"); err != nil {
		return d, err
	}
	if d.Start, err = o.date("start_date"); err != nil {
		return d, err
	}
	if d.End, err = o.date("end_date"); err != nil {
		return d, err
	}
	before, err := beforeEndDate(o)
	if err != nil {
		return d, err
	}
	if before != nil {
		d.BeforeEnd = &before.At
	}
	if _, err := o.list("events"); err != nil {
		return d, err
	}
	reservations, err := o.list("reservations")
	if err != nil {
		return d, err
	}
	flavors := flavorReader{handler: b, known: map[string]lease.Flavor{}}
	defer flavors.close()
	for _, each := range reservations {
		rd, err := flavors.reservationDraft(r.Context(), each)
		if err != nil {
			return d, err
		}
		d.Reservations = append(d.Reservations, rd)
	}
	return d, nil
}

// beforeEndDate reads before_end_date. If before_end_date is missing, null or the empty string, beforeEndDate
// returns nil, which stands for the default date.
func beforeEndDate(o object) (*lease.RequestedDate, error) {
	if !o.has("before_end_date") || string(o["before_end_date"]) == `""` {
		return nil, nil
	}
	s, err := o.text("before_end_date")
	if err != nil {
		return nil, invalidDate(string(o["before_end_date"]))
	}
	at, err := instant(s)
	return &lease.RequestedDate{At: at}, err
}

// changeOf reads the body of PUT /leases/{id}.
func changeOf(o object) (c lease.Change, err error) {
	if err := o.only("name", "start_date", "end_date", "before_end_date", "reservations"); err != nil {
		return c, err
	}
	if _, given := o["name"]; given {
		name, err := o.text("name")
		if err != nil {
			return c, err
		}
		c.Name = &name
	}
	for name, to := range map[string]**lease.RequestedDate{"start_date": &c.Start, "end_date": &c.End} {
		if _, given := o[name]; !given {
			continue
		}
		m, err := o.date(name)
		if err != nil {
			return c, err
		}
		*to = &m
	}
	before, err := beforeEndDate(o)
	if err != nil {
		return c, err
	}
	if before != nil {
		c.BeforeEnd = &before.At
	}
	c.Reservations, err = reservationChanges(o)
	return c, err
}

func reservationChanges(o object) ([]lease.ReservationChange, error) {
	all, err := o.list("reservations")
	if err != nil || all == nil {
		return nil, err
	}
	changes := []lease.ReservationChange{}
	for _, r := range all {
		if err := r.only(reservationFields...); err != nil {
			return nil, err
		}
		if err := r.need("id"); err != nil {
			return nil, err
		}
		id, err := r.text("id")
		if err != nil {
			return nil, err
		}
		c := lease.ReservationChange{ID: excerpt(id)}
		if err := reservationValues(r, &c); err != nil {
			return nil, err
		}
		if r.has("flavor_id") {
			flavor, err := r.text("flavor_id")
			if err == nil {
				err = lease.CheckFlavorID(flavor)
			}
			if err != nil {
				return nil, err
			}
			c.Flavor = &flavor
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// capabilities returns the extra capabilities of a host: all fields of the body that are not fields of a
// host. capabilities converts the values of the extra capabilities to strings.
func capabilities(o object) (map[string]string, error) {
	all := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		raw := o[key]
		switch raw[0] {
		case '"':
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				return nil, lease.Faultf(lease.MalformedParameter, "Malformed parameter %s", excerpt(key))
			}
			all[key] = s
		case 't':
			all[key] = "True"
		case 'f':
			all[key] = "False"
		case '{', '[', 'n':
			return nil, lease.Faultf(lease.MalformedParameter,
				"Malformed parameter %s: it must be a string.", excerpt(key))
		default:
			all[key] = string(raw)
		}
	}
	return all, nil
}
