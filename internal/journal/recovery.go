package journal

import "encoding/json"

// RecoveryInput holds the facts that a recovery found about the object of a failed entry.
type RecoveryInput struct {
	Actual        json.RawMessage // the controller's object; nil if it does not exist
	Desired       json.RawMessage // berth's object; nil if it was deleted
	HasLaterEntry bool            // a later entry of the same object waits for the failed entry
}

// RecoveryAction is the decision of a recovery about a failed entry: finish the entry without another
// request, or send it again with this operation and data.
type RecoveryAction struct {
	Finish    bool
	Operation Operation
	Data      json.RawMessage
	Reason    string // for human readers
}

// DecideRecovery decides what happens to a failed entry by comparing the controller's object with berth's
// object. If a later entry of the same object exists, the failed entry keeps its own data, because the later
// entry will send the newer data.
func DecideRecovery(e Entry, o RecoveryInput) RecoveryAction {
	atController, inDatabase := o.Actual != nil, o.Desired != nil
	data := e.Data
	if inDatabase && !o.HasLaterEntry {
		data = o.Desired
	}
	finish := func(reason string) RecoveryAction {
		return RecoveryAction{
			Finish:    true,
			Operation: e.Operation,
			Data:      e.Data,
			Reason:    reason,
		}
	}
	resend := func(op Operation, reason string) RecoveryAction {
		return RecoveryAction{Operation: op, Data: data, Reason: reason}
	}
	switch {
	case e.Operation == Delete && !atController:
		return finish("the controller no longer has it")
	case e.Operation == Delete && inDatabase && !o.HasLaterEntry:
		return finish("it exists again")
	case e.Operation == Delete:
		return RecoveryAction{Operation: Delete, Data: e.Data, Reason: "the controller still has it"}
	case !atController && !inDatabase:
		return finish("deleted in the database and at the controller")
	case !atController:
		return resend(Create, "the controller lacks it")
	case !inDatabase && o.HasLaterEntry:
		return finish("it was deleted; a later entry deletes it at the controller")
	case !inDatabase:
		return RecoveryAction{
			Operation: Delete,
			Data:      e.Data,
			Reason:    "it was deleted in the database, but the controller still has it",
		}
	case len(DifferingAttributes(e.Object.Type, data, o.Actual)) == 0:
		return finish("the controller has the current object")
	default:
		return resend(Update, "the controller has a different object")
	}
}
