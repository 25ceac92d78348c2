package oslomsg

import (
	"fmt"

	"berth/internal/text"
)

// The Python modules of the exceptions that a server written with oslo.messaging raises.
const (
	dispatcherModule = "oslo_messaging.rpc.dispatcher"
	builtinsModule   = "builtins"
)

// Failure is a Python exception in the reply to a failed call; the caller raises the exception. The JSON
// names of the fields of Failure are those of oslo.messaging's serialized exceptions.
type Failure struct {
	Class     string         `json:"class"`
	Module    string         `json:"module"`
	Message   string         `json:"message"`
	Traceback []string       `json:"tb"`
	Args      []string       `json:"args"`
	Kwargs    map[string]any `json:"kwargs"`
}

func (f *Failure) Error() string { return f.Message }

// className returns the class of the exception, or "" if f is nil.
func (f *Failure) className() string {
	if f == nil {
		return ""
	}
	return f.Class
}

// NewFailure returns the exception module.class with a formatted message.
func NewFailure(module, class, format string, args ...any) *Failure {
	message := fmt.Sprintf(format, args...)
	return &Failure{
		Class:     class,
		Module:    module,
		Message:   message,
		Traceback: []string{class + ": " + message + "\n"},
		Args:      []string{message},
		Kwargs:    map[string]any{},
	}
}

// NewTypeError returns Python's TypeError, the exception for arguments that a method does not accept.
func NewTypeError(format string, args ...any) *Failure {
	return NewFailure(builtinsModule, "TypeError", format, args...)
}

// Excerpt shortens a text from a client for a failure's message.
func Excerpt(s string) string { return text.Excerpt(s, 100) }
