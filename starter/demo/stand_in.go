package demo

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"berth/starter/cli"
)

// baseURL returns the scheme and host of a URL, without the path. A stub of an external service receives
// control requests at paths below its base URL.
func baseURL(address string) string {
	u, err := url.Parse(address)
	if address == "" || err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// queryStandIn reads the requests or events that a stub of an external service has recorded. ok is false if
// the program that answers at the URL is not a stub.
func queryStandIn(ctx context.Context, url string) (raw any, ok bool, err error) {
	a := &cli.Client{BaseURL: url, HTTP: &http.Client{Timeout: waitLimit}}
	err = a.Do(ctx, "GET", "", nil, &raw)
	var r *cli.APIError
	switch {
	case errors.As(err, &r):
		return nil, false, nil
	case err != nil && cli.ExitCode(err) == cli.ExitUnavailable:
		return nil, false, cli.Unavailable("the service at "+url, "", errors.Unwrap(err))
	case err != nil:
		return nil, false, nil // an answer that is not JSON does not come from a stub
	}
	return raw, true, nil
}

// listUnder returns the objects of a JSON list. The list is `raw` itself, or the value of a key of the JSON
// object `raw`.
func listUnder(raw any, key string) []cli.Object {
	if o, ok := raw.(cli.Object); ok {
		raw = o[key]
	}
	all, _ := cli.Objects(raw)
	return all
}
