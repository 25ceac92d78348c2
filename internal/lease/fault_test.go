package lease

import (
	"errors"
)

// kindOf returns the kind of a fault if `err` is a *Fault. Otherwise kindOf returns the text of the error, or
// an empty string for nil.
func kindOf(err error) Kind {
	var f *Fault
	if errors.As(err, &f) {
		return f.Kind
	}
	if err != nil {
		return Kind(err.Error())
	}
	return ""
}
