package lease

import (
	"errors"
)

// kindOf returns the kind of a fault, or the text of another error.
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
