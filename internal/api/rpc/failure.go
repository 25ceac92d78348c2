package rpc

import (
	"errors"
	"fmt"

	"berth/internal/network"
	"berth/internal/store"
)

// The modules in which agents look for the classes of failures.
const (
	neutronExceptions = "neutron_lib.exceptions"
	dispatcher        = "oslo_messaging.rpc.dispatcher"
	builtins          = "builtins"
)

// Failure is an exception that a caller raises again on its side.
type Failure struct {
	Class   string         `json:"class"`
	Module  string         `json:"module"`
	Message string         `json:"message"`
	Trace   []string       `json:"tb"`
	Args    []string       `json:"args"`
	Kwargs  map[string]any `json:"kwargs"`
}

func (f *Failure) Error() string { return f.Message }

func failuref(module, class, format string, args ...any) *Failure {
	message := fmt.Sprintf(format, args...)
	return &Failure{Class: class, Module: module, Message: message, Trace: []string{class + ": " + message + "\n"},
		Args: []string{message}, Kwargs: map[string]any{}}
}

// final tells whether an error is the answer to a call. Anything else is trouble of ours, which may pass.
func final(err error) bool {
	var f *Failure
	var refused *network.Fault
	return errors.As(err, &f) || errors.As(err, &refused) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict)
}

// failureOf is an error as the caller gets it: agents know most kinds of refusals by the name of their class.
func failureOf(err error) *Failure {
	var f *Failure
	var refused *network.Fault
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &refused):
		return failuref(neutronExceptions, string(refused.Kind), "%s", refused.Message)
	case errors.Is(err, store.ErrNotFound):
		return failuref(neutronExceptions, "NotFound", "%s", err)
	case errors.Is(err, store.ErrConflict):
		return failuref(neutronExceptions, "Conflict", "%s", err)
	default: // what went wrong inside stays inside; the log has it
		return failuref(neutronExceptions, "ServiceUnavailable", "berth cannot answer at the moment.")
	}
}

func badArgument(format string, args ...any) *Failure {
	return failuref(builtins, "TypeError", format, args...)
}
