package lease

import (
	"errors"
)

// kindOf returns the kind of a *Fault, the text of any other error, or an empty string if there is no error.
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
