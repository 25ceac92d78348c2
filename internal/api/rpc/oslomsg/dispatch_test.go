package oslomsg

import (
	"context"
	"encoding/json"
	"testing"
)

func TestFindMethod_ChecksNamespaceVersionAndName(t *testing.T) {
	t.Parallel()
	method := WithArgs(func(context.Context, struct{}) (any, error) { return nil, nil })
	endpoints := []Endpoint{{Minor: 4, Methods: map[string]Method{"known": method}}, {Minor: 9}}
	for name, c := range map[string]struct {
		request request
		class   string
	}{
		"default version":        {request{Method: "known"}, ""},
		"newest version":         {request{Method: "known", Version: "1.4"}, ""},
		"version too new":        {request{Method: "known", Version: "1.5"}, "UnsupportedVersion"},
		"other major version":    {request{Method: "known", Version: "2.0"}, "UnsupportedVersion"},
		"invalid version":        {request{Method: "known", Version: "x"}, "UnsupportedVersion"},
		"namespace":              {request{Method: "known", Namespace: "n"}, "UnsupportedVersion"},
		"unknown method":         {request{Method: "unknown", Version: "1.9"}, "NoSuchMethod"},
		"unknown method too new": {request{Method: "unknown", Version: "1.10"}, "UnsupportedVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, failure := findMethod(endpoints, c.request)
			switch {
			case c.class == "" && (m == nil || failure != nil):
				t.Errorf("find a method that exists: got failure %v, want none", failure)
			case c.class != "" && (m != nil || failure == nil || failure.Class != c.class):
				t.Errorf("find a method or version that does not exist: got failure %v, want %s",
					failure, c.class)
			}
		})
	}
}

func TestWithArgs_RefusesArgumentsOfAnotherType(t *testing.T) {
	t.Parallel()
	m := WithArgs(func(_ context.Context, a struct{ Host string }) (any, error) { return a.Host, nil })
	if got, err := m(t.Context(), json.RawMessage(`{"host":"h","other":1}`)); got != "h" || err != nil {
		t.Errorf("call a method with the host h and an unknown argument: got %v, error %v; want h", got, err)
	}
	_, err := m(t.Context(), json.RawMessage(`{"host":7}`))
	if f, ok := err.(*Failure); !ok ||
		f.Class != "TypeError" { //nolint:errorlint // the method returns it unwrapped
		t.Errorf("call a method with an argument of the wrong type: got error %v, want TypeError", err)
	}
}
