package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
)

// endpoint is a set of methods with the version up to which berth knows them.
type endpoint struct {
	minor   int // of major version 1
	methods map[string]method
}

// method answers a call. It is called again for the same message after any trouble, so it must not mind.
type method func(ctx context.Context, d *Desk, args json.RawMessage) (any, error)

// endpoints are what agents call, all without a namespace.
var endpoints = []endpoint{
	{minor: 4, methods: stateMethods},
	{minor: 10, methods: dhcpMethods},
	{minor: 9, methods: wiringMethods},
	{minor: 1, methods: objectMethods},
	{minor: 3, methods: securityMethods},
	{minor: 1, methods: routerMethods},
}

// find is the method that a request means, or why there is none.
func find(r request) (method, error) {
	unsupported := failuref(dispatcher, "UnsupportedVersion", "Endpoint does not support RPC version %s. Attempted method: %s", short(r.Version), short(r.Method))
	unknown := failuref(dispatcher, "NoSuchMethod", "Endpoint does not support RPC method %s", short(r.Method))
	major, minor, ok := versionOf(r.Version)
	if !ok || major != 1 || r.Namespace != "" {
		return nil, unsupported
	}
	for _, e := range endpoints {
		m, there := e.methods[r.Method]
		switch {
		case there && minor <= e.minor:
			return m, nil
		case there:
			return nil, unsupported
		}
	}
	for _, e := range endpoints {
		if minor <= e.minor {
			return nil, unknown
		}
	}
	return nil, unsupported
}

// versionOf reads "1.5"; without a version 1.0 is meant.
func versionOf(s string) (major, minor int, ok bool) {
	if s == "" {
		return 1, 0, true
	}
	first, second, _ := strings.Cut(s, ".")
	major, err := strconv.Atoi(first)
	minor, err2 := strconv.Atoi(second)
	return major, minor, err == nil && err2 == nil && major >= 0 && minor >= 0
}

// short is what a failure repeats of what a stranger sent.
func short(s string) string {
	if len(s) > 100 {
		return strings.ToValidUTF8(s[:100], "") + "…"
	}
	return s
}

// with is a method whose arguments are a T; those that T does not name do not matter.
func with[T any](f func(context.Context, *Desk, T) (any, error)) method {
	return func(ctx context.Context, d *Desk, raw json.RawMessage) (any, error) {
		var args T
		if raw = bytes.TrimSpace(raw); len(raw) > 0 {
			if err := json.Unmarshal(raw, &args); err != nil {
				return nil, badArgument("the arguments are not what the method takes: %s", short(err.Error()))
			}
		}
		return f(ctx, d, args)
	}
}
