package journal

import "encoding/json"

// Observed is what recovery found out about the object of a failed entry.
type Observed struct {
	Has   json.RawMessage // the controller's object; nil if it has none
	Shall json.RawMessage // our object; nil if it was deleted
	Later bool            // a later entry of the same object waits for this one
}

// Remedy is the decision about a failed entry: finish it, or send it again with this operation and data.
type Remedy struct {
	Finish    bool
	Operation Operation
	Data      json.RawMessage
	Reason    string // for human readers
}

// Recover decides about a failed entry by comparing the controller's object with ours. If a later entry of the object
// exists, the entry keeps its own data, because the later entry carries newer data.
func Recover(e Entry, o Observed) Remedy {
	atController, inDatabase := o.Has != nil, o.Shall != nil
	data := e.Data
	if inDatabase && !o.Later {
		data = o.Shall
	}
	finish := func(reason string) Remedy {
		return Remedy{Finish: true, Operation: e.Operation, Data: e.Data, Reason: reason}
	}
	resend := func(op Operation, reason string) Remedy { return Remedy{Operation: op, Data: data, Reason: reason} }
	switch {
	case e.Operation == Delete && !atController:
		return finish("the controller no longer has it")
	case e.Operation == Delete && inDatabase && !o.Later:
		return finish("it exists again")
	case e.Operation == Delete:
		return Remedy{Operation: Delete, Data: e.Data, Reason: "the controller still has it"}
	case !atController && !inDatabase:
		return finish("deleted in the database and at the controller")
	case !atController:
		return resend(Create, "the controller lacks it")
	case !inDatabase && o.Later:
		return finish("it was deleted; a later entry deletes it at the controller")
	case !inDatabase:
		return Remedy{Operation: Delete, Data: e.Data, Reason: "it was deleted in the database, but the controller still has it"}
	case len(Differences(e.Object.Type, data, o.Has)) == 0:
		return finish("the controller has the current object")
	default:
		return resend(Update, "the controller has a different object")
	}
}
