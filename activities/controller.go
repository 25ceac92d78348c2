package activities

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"berth/internal/journal"
	"berth/internal/odl"
)

// Controller is the OpenDaylight controller.
type Controller interface {
	// Send sends one request without a retry. If Send returns an error, the controller may or may not have
	// executed the request.
	Send(ctx context.Context, r odl.Request) (odl.Response, error)
	// List calls the function `each` for every object of a collection. The parameter `key` is the JSON key in
	// the response body under which the collection's list of objects stands.
	List(ctx context.Context, path, key string, each func(json.RawMessage) error) (odl.Response, error)
	// BreakerWait returns how long the caller must wait before the next request, and why. BreakerWait returns
	// 0 if the caller may send a request now.
	BreakerWait() (wait time.Duration, why string)
	// Readable reports whether the controller's objects can be read and compared with the rows.
	Readable() bool
}

// readObject sends a read request. It returns nil if the controller does not have the object, and an error if
// the controller is unavailable. If the controller has recently accepted a write, readObject treats an error
// answer or a timeout as an error of this object only.
func (a *Activities) readObject(ctx context.Context, r journal.Request) ([]byte, error) {
	call, cancel := context.WithTimeout(ctx, a.Timeouts.LongCall)
	defer cancel()
	got, err := a.ODL.Send(call, odl.Request{Method: r.Method, Path: r.Path, MaxAnswer: odl.MaxObject})
	if err != nil {
		return nil, err
	}
	switch {
	case !a.accepted.isRecent():
	case got.Failure == odl.FailureTimeout || got.Failure == odl.FailureReset:
		return nil, objectError("%s %s: %s: %s; the controller accepts writes",
			r.Method, r.Path, got.Failure, got.Detail)
	case got.Status >= 500 && got.RetryAfter == 0:
		return nil, objectError("%s %s: the controller answered %d, and accepts writes",
			r.Method, r.Path, got.Status)
	}
	found, err := checkResponse(r, got)
	if !found {
		return nil, err
	}
	return got.Body, err
}

// listCollection calls the function `each` for every object of a collection. listCollection returns false if
// the controller does not have the collection.
func (a *Activities) listCollection(
	ctx context.Context,
	r journal.Request,
	key string,
	each func(json.RawMessage) error,
) (found bool, err error) {
	got, err := a.ODL.List(ctx, r.Path, key, each)
	switch {
	case errors.Is(err, odl.ErrUnexpectedBody):
		return false, objectError("%s %s: %s", r.Method, r.Path, err)
	case err != nil:
		return false, err
	}
	return checkResponse(r, got)
}

// checkResponse classifies the response to a read request: found, not found, or the controller is
// unavailable.
func checkResponse(r journal.Request, got odl.Response) (found bool, err error) {
	switch {
	case got.Failure != "":
		return false, controllerUnavailable(got.RetryAfter,
			"%s %s: %s: %s", r.Method, r.Path, got.Failure, got.Detail)
	case got.Status == 200:
		return true, nil
	case got.Status == 404:
		return false, nil
	case slices.Contains(unavailableStatuses, got.Status):
		return false, controllerUnavailable(got.RetryAfter,
			"%s %s: the controller answered %d", r.Method, r.Path, got.Status)
	default:
		return false, objectError("%s %s: the controller answered %d", r.Method, r.Path, got.Status)
	}
}

// unavailableStatuses are the HTTP statuses that concern the whole controller and not only the requested
// object.
var unavailableStatuses = []int{401, 403, 408, 429, 502, 503, 504}

// controllerObject reads an object from the controller. controllerObject returns nil if the controller does
// not have the object.
func (a *Activities) controllerObject(ctx context.Context, ref journal.Ref, data []byte) ([]byte, error) {
	request, err := journal.ReadRequest(journal.Entry{Object: ref, Data: data})
	if err != nil {
		return nil, objectError("%s", err)
	}
	body, err := a.readObject(ctx, request)
	if body == nil || err != nil {
		return nil, err
	}
	object, err := journal.UnwrapObject(ref.Type, body)
	if err != nil {
		return nil, objectError("%s", err)
	}
	return object, nil
}
