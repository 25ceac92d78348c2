package oslomsg

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
)

// Endpoint is a set of RPC methods without a namespace, in the RPC versions 1.0 to 1.Minor.
type Endpoint struct {
	Minor   int
	Methods map[string]Method
}

// Method executes a call and returns the result. A Method must be idempotent, because the server calls the
// method again for the same message after a transient error or if RabbitMQ delivers the message again.
type Method func(ctx context.Context, args json.RawMessage) (any, error)

// WithArgs returns a Method that decodes the arguments of a call into a value of the type T and calls f with
// this value. The returned Method ignores arguments for which the type T has no field.
func WithArgs[T any](f func(context.Context, T) (any, error)) Method {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var args T
		if raw = bytes.TrimSpace(raw); len(raw) > 0 {
			if err := json.Unmarshal(raw, &args); err != nil {
				return nil, NewTypeError("the method does not accept these arguments: %s",
					Excerpt(err.Error()))
			}
		}
		return f(ctx, args)
	}
}

// findMethod returns the method that a request names. If the server has no method with the requested name,
// findMethod returns the same failure as the dispatcher of oslo.messaging.
func findMethod(endpoints []Endpoint, r request) (Method, *Failure) {
	unsupported := NewFailure(
		dispatcherModule, "UnsupportedVersion",
		"Endpoint does not support RPC version %s. Attempted method: %s",
		Excerpt(r.Version), Excerpt(r.Method),
	)
	unknown := NewFailure(dispatcherModule, "NoSuchMethod",
		"Endpoint does not support RPC method %s", Excerpt(r.Method))
	major, minor, ok := ParseVersion(r.Version)
	if !ok || major != 1 || r.Namespace != "" {
		return nil, unsupported
	}
	for _, e := range endpoints {
		m, found := e.Methods[r.Method]
		switch {
		case found && minor <= e.Minor:
			return m, nil
		case found:
			return nil, unsupported
		}
	}
	for _, e := range endpoints {
		if minor <= e.Minor {
			return nil, unknown
		}
	}
	return nil, unsupported
}

// ParseVersion parses a version such as "1.5". ParseVersion treats the empty string as version 1.0.
func ParseVersion(s string) (major, minor int, ok bool) {
	if s == "" {
		return 1, 0, true
	}
	first, second, _ := strings.Cut(s, ".")
	major, err := strconv.Atoi(first)
	minor, err2 := strconv.Atoi(second)
	return major, minor, err == nil && err2 == nil && major >= 0 && minor >= 0
}
