package journal

import "encoding/json"

// Observed is what recovery found out about the object of an entry that failed.
type Observed struct {
	Has   json.RawMessage // the controller's object; nil if it has none
	Shall json.RawMessage // ours; nil if we have none
	Later bool            // another entry of the object waits for this one
}

// Remedy is what becomes of an entry that failed: either nothing is left to do, or it is sent again with what is
// given here.
type Remedy struct {
	Finish    bool
	Operation Operation
	Data      json.RawMessage
	Reason    string // for people
}

// Recover decides about an entry that failed, by what the controller has and what it shall have. An entry that
// others of its object follow keeps its own data: theirs is newer, and must not be followed by older.
func Recover(e Entry, o Observed) Remedy {
	there, kept := o.Has != nil, o.Shall != nil
	data := e.Data
	if kept && !o.Later {
		data = o.Shall
	}
	finish := func(reason string) Remedy {
		return Remedy{Finish: true, Operation: e.Operation, Data: e.Data, Reason: reason}
	}
	resend := func(op Operation, reason string) Remedy { return Remedy{Operation: op, Data: data, Reason: reason} }
	switch {
	case e.Operation == Delete && !there:
		return finish("the controller no longer has it")
	case e.Operation == Delete && kept && !o.Later:
		return finish("it exists again")
	case e.Operation == Delete:
		return Remedy{Operation: Delete, Data: e.Data, Reason: "the controller still has it"}
	case !there && !kept:
		return finish("it is gone here and there")
	case !there:
		return resend(Create, "the controller lacks it")
	case !kept && o.Later:
		return finish("it was deleted; the entry that says so follows")
	case !kept:
		return Remedy{Operation: Delete, Data: e.Data, Reason: "it was deleted, and the controller has it"}
	case len(Differences(e.Object.Type, data, o.Has)) == 0:
		return finish("the controller has it as it shall be")
	default:
		return resend(Update, "the controller has it otherwise")
	}
}
