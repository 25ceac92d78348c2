package cliext

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/server/common/primitives/timestamp"
)

// FlagDuration is a flag whose value is a duration. The unit d (days) is allowed, too.
type FlagDuration time.Duration

// ParseFlagDuration reads a duration such as 90s or 3d.
func ParseFlagDuration(s string) (time.Duration, error) { return timestamp.ParseDuration(s) }

// MustParseFlagDuration reads a default value. MustParseFlagDuration panics if the default value is not a
// duration.
func MustParseFlagDuration(s string) FlagDuration {
	d, err := ParseFlagDuration(s)
	if err != nil {
		panic(err)
	}
	return FlagDuration(d)
}

// Duration returns the value.
func (d FlagDuration) Duration() time.Duration { return time.Duration(d) }

func (d *FlagDuration) String() string { return d.Duration().String() }

// Set parses the value of the flag.
func (d *FlagDuration) Set(s string) error {
	parsed, err := ParseFlagDuration(s)
	if err != nil {
		return err
	}
	*d = FlagDuration(parsed)
	return nil
}

// Type is the name of the type in the help.
func (*FlagDuration) Type() string { return "duration" }

// FlagTimestamp is a flag whose value is a time in the format of RFC 3339.
type FlagTimestamp time.Time

// Time returns the value.
func (t FlagTimestamp) Time() time.Time { return time.Time(t) }

func (t *FlagTimestamp) String() string { return t.Time().Format(time.RFC3339) }

// Set parses the value of the flag.
func (t *FlagTimestamp) Set(s string) error {
	parsed, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return err
	}
	*t = FlagTimestamp(parsed)
	return nil
}

// Type is the name of the type in the help.
func (*FlagTimestamp) Type() string { return "timestamp" }

// FlagStringEnum is a flag that accepts one of some values.
type FlagStringEnum struct {
	Allowed            []string
	Value              string
	ChangedFromDefault bool
}

// NewFlagStringEnum returns a flag with a default value.
func NewFlagStringEnum(allowed []string, value string) FlagStringEnum {
	return FlagStringEnum{Allowed: allowed, Value: value}
}

func (e *FlagStringEnum) String() string { return e.Value }

// Set checks and sets the value of the flag.
func (e *FlagStringEnum) Set(s string) error {
	value, err := oneOf(e.Allowed, s)
	if err != nil {
		return err
	}
	e.Value, e.ChangedFromDefault = value, true
	return nil
}

// Type is the name of the type in the help.
func (*FlagStringEnum) Type() string { return "string" }

// FlagStringEnumArray is a flag that accepts some values and can be repeated.
type FlagStringEnumArray struct {
	Allowed []string
	Values  []string
}

// NewFlagStringEnumArray returns a flag with default values.
func NewFlagStringEnumArray(allowed, values []string) FlagStringEnumArray {
	return FlagStringEnumArray{Allowed: allowed, Values: values}
}

func (e *FlagStringEnumArray) String() string { return strings.Join(e.Values, ",") }

// Set checks a value and adds it to the values of the flag.
func (e *FlagStringEnumArray) Set(s string) error {
	value, err := oneOf(e.Allowed, s)
	if err != nil {
		return err
	}
	e.Values = append(e.Values, value)
	return nil
}

// Type is the name of the type in the help.
func (*FlagStringEnumArray) Type() string { return "string" }

// oneOf returns the allowed value that equals s in upper or lower case.
func oneOf(allowed []string, s string) (string, error) {
	i := slices.IndexFunc(allowed, func(a string) bool { return strings.EqualFold(a, s) })
	if i < 0 {
		return "", fmt.Errorf("%q is not one of %s", s, strings.Join(allowed, ", "))
	}
	return allowed[i], nil
}
