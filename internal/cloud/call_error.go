package cloud

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"berth/internal/lease"
)

// callError returns an error that says which party failed with which call. The parameter `party` is the party
// that the caller has called.
func callError(party string, err error) error {
	e := &lease.CallError{Party: party, Call: "wait for a change", Err: err}
	var answered gophercloud.ErrUnexpectedResponseCode
	var unanswered *url.Error
	var reauth *gophercloud.ErrUnableToReauthenticate
	switch {
	case errors.As(err, &reauth):
		e.Party, e.Call = lease.PartyKeystone, "authenticate"
	case errors.As(err, &answered):
		e.Call = fmt.Sprintf("%s %s answered %d", answered.Method, pathOf(answered.URL), answered.Actual)
	case errors.As(err, &unanswered):
		e.Call = strings.ToUpper(unanswered.Op) + " " + pathOf(unanswered.URL) + " got no answer"
	}
	return e
}

// errNoObject means that a service answered with success, but without the object.
var errNoObject = errors.New("the answer contains no object")

// answered returns an error for an answer without an object. gophercloud returns nil for such an answer.
func answered[T any](object *T, err error) (*T, error) {
	if err == nil && object == nil {
		err = errNoObject
	}
	return object, err
}

// pathOf returns the path and the query of an address.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.RequestURI()
}
