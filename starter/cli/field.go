package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Field is an attribute of a resource, together with the command-line flag of `create` and `set` that sets
// the attribute.
type Field struct {
	Flag, Key, Help string
	Parse           Parser
	OnlyFor         string // "create" or "set"; empty: both commands have the flag
	Repeatable      bool   // the flag may be repeated
}

// Parser converts the values of a command-line flag to the value of an attribute. `values` has one item; only
// a repeatable field can have several.
type Parser func(ctx context.Context, s *Session, values []string) (any, error)

// Text is a Parser that returns the value unchanged.
func Text(_ context.Context, _ *Session, values []string) (any, error) { return values[0], nil }

// TextOrNone is a Parser for text. TextOrNone converts the word "none" to the JSON value null.
func TextOrNone(_ context.Context, _ *Session, values []string) (any, error) {
	if values[0] == "none" {
		return nil, nil
	}
	return values[0], nil
}

// Number is a Parser for a whole number.
func Number(_ context.Context, _ *Session, values []string) (any, error) {
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		return nil, UsageError("%q is not a whole number", values[0])
	}
	return n, nil
}

// Boolean is a Parser for true or false.
func Boolean(_ context.Context, _ *Session, values []string) (any, error) {
	b, err := strconv.ParseBool(values[0])
	if err != nil {
		return nil, UsageError("%q is neither true nor false", values[0])
	}
	return b, nil
}

// JSON is a Parser for JSON, which is sent to the API unchanged.
func JSON(_ context.Context, _ *Session, values []string) (any, error) {
	var v any
	if err := Decode([]byte(values[0]), &v); err != nil {
		return nil, UsageError("%q is not JSON: %s", values[0], err)
	}
	return v, nil
}

// CommaList is a Parser for words that are separated by commas.
func CommaList(_ context.Context, _ *Session, values []string) (any, error) {
	all := []string{}
	for _, word := range values {
		for item := range strings.SplitSeq(word, ",") {
			if item != "" {
				all = append(all, item)
			}
		}
	}
	return all, nil
}

// Reference returns a Parser that converts the name or ID of an object of the resource r to the ID of the
// object.
func Reference(r *Resource) Parser {
	return func(ctx context.Context, s *Session, values []string) (any, error) {
		return r.Resolve(ctx, s, values[0])
	}
}

// DeclareFields declares the flags of the fields for one command, create or set. The function that
// DeclareFields returns makes the body of a request from the flags that the user has given.
func DeclareFields(
	f *pflag.FlagSet,
	fields []Field,
	command string,
) func(ctx context.Context, s *Session) (Object, error) {
	values := make([]func() []string, len(fields))
	for i, fl := range fields {
		if fl.OnlyFor != "" && fl.OnlyFor != command {
			continue
		}
		if fl.Repeatable {
			v := f.StringArray(fl.Flag, nil, fl.Help)
			values[i] = func() []string { return *v }
			continue
		}
		v := f.String(fl.Flag, "", fl.Help)
		values[i] = func() []string { return []string{*v} }
	}
	return func(ctx context.Context, s *Session) (Object, error) {
		body := Object{}
		for i, fl := range fields {
			if values[i] == nil || !f.Changed(fl.Flag) {
				continue
			}
			v, err := fl.Parse(ctx, s, values[i]())
			if err != nil {
				return nil, err
			}
			body[fl.Key] = v
		}
		return body, nil
	}
}

// Integer converts a decoded JSON number to an int64. Integer returns -1 for every value that is not a JSON
// number, and for a missing attribute.
func Integer(v any) int64 {
	n, ok := v.(json.Number)
	if !ok {
		return -1
	}
	i, err := n.Int64()
	if err != nil {
		return -1
	}
	return i
}

// TimeoutFlag declares --timeout.
func TimeoutFlag(f *pflag.FlagSet, defaultTimeout time.Duration, help string) *time.Duration {
	return f.Duration("timeout", defaultTimeout, help)
}
