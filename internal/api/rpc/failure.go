package rpc

import (
	"errors"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
	"berth/internal/store/db"
)

// neutronExceptions is the Python module in which agents look up exceptions.
const neutronExceptions = "neutron_lib.exceptions"

// failureOf returns the exception that the agent raises for a method's error. If the error is a
// network.Fault, failureOf returns the Neutron exception whose name is the kind of the fault; agents know
// most of these Neutron exceptions. If the error is neither a network.Fault nor db.ErrNotFound nor
// db.ErrConflict, the server repeats the method, logs the text of the error, and does not send the text to
// the agent.
func failureOf(err error) (*oslomsg.Failure, oslomsg.Repetition) {
	var fault *network.Fault
	switch {
	case errors.As(err, &fault):
		failure := oslomsg.NewFailure(neutronExceptions, string(fault.Kind), "%s", fault.Message)
		return failure, oslomsg.NoRepetition
	case errors.Is(err, db.ErrNotFound):
		return oslomsg.NewFailure(neutronExceptions, "NotFound", "%s", err), oslomsg.NoRepetition
	case errors.Is(err, db.ErrConflict):
		return oslomsg.NewFailure(neutronExceptions, "Conflict", "%s", err), oslomsg.NoRepetition
	}
	unavailable := oslomsg.NewFailure(neutronExceptions, "ServiceUnavailable",
		"berth cannot answer at the moment.")
	if errors.Is(err, db.ErrUnavailable) {
		return unavailable, oslomsg.UntilSuccess
	}
	return unavailable, oslomsg.UntilDeadline
}

func internalFailure(message string) *oslomsg.Failure {
	return oslomsg.NewFailure(neutronExceptions, "NeutronException", "%s", message)
}
