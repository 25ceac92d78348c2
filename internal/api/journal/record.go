package journal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"berth/internal/api/osapi"
	"berth/internal/journal"
	"berth/internal/store/db"
)

// maxChanges is the maximum number of changes in one request.
const maxChanges = 1000

// change is the JSON format of a change of an object for which berth has no API. If the operation is create
// or update, the field `data` contains the whole object.
type change struct {
	Operation journal.Operation `json:"operation"`
	Type      string            `json:"object_type"`
	Object    string            `json:"object_id"`
	Data      json.RawMessage   `json:"data"`
	Project   string            `json:"project_id"`
	Name      string            `json:"name"`
}

// changesBody is the JSON format of a request that appends changes.
type changesBody struct {
	Entries []change `json:"entries"`
}

// record appends the changes of a request to the journal, in one transaction.
func (h handlers) record(r *http.Request) (int, any, error) {
	var body changesBody
	if err := osapi.Decode(r, &body); err != nil {
		return 0, nil, err
	}
	if len(body.Entries) == 0 || len(body.Entries) > maxChanges {
		return 0, nil, osapi.Fault(http.StatusBadRequest, "", "'entries' must hold 1 to %d changes.",
			maxChanges)
	}
	changes := make([]journal.Change, len(body.Entries))
	for i, c := range body.Entries {
		var err error
		if changes[i], err = changeOf(c); err != nil {
			return 0, nil, osapi.Fault(http.StatusBadRequest, "", "Entry %d of the request: %s.", i+1, err)
		}
	}
	entries, err := h.entries.RecordChanges(r.Context(), changes)
	switch {
	case errors.Is(err, db.ErrConflict):
		return 0, nil, osapi.Fault(http.StatusConflict, "",
			"An object to create already exists; no change was recorded.")
	case errors.Is(err, db.ErrNotFound):
		return 0, nil, osapi.Fault(http.StatusNotFound, "",
			"An object to update or delete, or the BGPVPN of an association, does not exist; no change was recorded.")
	case err != nil:
		return 0, nil, err
	}
	return http.StatusCreated, map[string]any{"entries": entriesOf(entries)}, nil
}

// maxText is the maximum length of a name or a project, in bytes.
const maxText = 255

// changeOf checks a change in a request and converts the change to a journal.Change. changeOf does not check
// whether the object exists, because the store checks the existence when it records the change.
func changeOf(c change) (journal.Change, error) {
	out := journal.Change{
		Object:    journal.Ref{Type: c.Type, ID: c.Object},
		Operation: c.Operation,
		Data:      c.Data,
		Project:   c.Project,
		Name:      c.Name,
	}
	_, isUUID := osapi.UUID(c.Object)
	switch {
	case !journal.IsKnownType(c.Type) && !journal.IsAssociation(c.Type):
		return out, errors.New("OpenDaylight has no objects of that type")
	case journal.HasAPI(c.Type):
		return out, errors.New("objects of that type are changed through /networking")
	case !isUUID:
		return out, errors.New("'object_id' is not a UUID")
	case len(c.Project) > maxText || len(c.Name) > maxText:
		return out, errors.New("'project_id' or 'name' is too long")
	case journal.IsAssociation(c.Type) && c.Operation == journal.Update:
		return out, errors.New("an association is created or deleted, not updated")
	case c.Operation == journal.Delete && len(c.Data) > 0:
		return out, errors.New("a delete has no data")
	case c.Operation == journal.Delete:
		return out, nil
	}
	object, err := textsOf(c.Data, "id", "name", "project_id", "tenant_id")
	if err != nil || object["id"] != c.Object {
		return out, errors.New(
			"'data' must be the whole object: its 'id' is the 'object_id', and its name and project are strings",
		)
	}
	if err := checkSendable(out); err != nil {
		return out, err
	}
	out.Name = cmp.Or(c.Name, emptyIfLong(object["name"]))
	out.Project = cmp.Or(c.Project, emptyIfLong(object["project_id"]), emptyIfLong(object["tenant_id"]))
	return out, nil
}

// textsOf reads texts of a JSON object by exactly these names: package encoding/json would read the key ID
// into a field with the name id, but the controller would not.
func textsOf(object json.RawMessage, names ...string) (map[string]string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, name := range names {
		var text string
		if raw, ok := fields[name]; ok && json.Unmarshal(raw, &text) != nil {
			return nil, fmt.Errorf("%s is not a string", name)
		}
		texts[name] = text
	}
	return texts, nil
}

// checkSendable returns an error if berth cannot create a request to the controller for the change.
func checkSendable(c journal.Change) error {
	if !journal.IsAssociation(c.Object.Type) {
		_, err := journal.WriteRequest(journal.Entry{Object: c.Object, Operation: c.Operation, Data: c.Data})
		return err
	}
	if c.Operation != journal.Create {
		return fmt.Errorf("unknown operation %q", c.Operation)
	}
	a, err := journal.ReadAssociation(c.Object.Type, c.Data)
	if err != nil {
		return err
	}
	if _, isUUID := osapi.UUID(a.VPN.ID); !isUUID {
		return errors.New("'bgpvpn_id' is not a UUID")
	}
	return nil
}

// emptyIfLong returns the text, or "" if the text is longer than maxText.
func emptyIfLong(text string) string {
	if len(text) > maxText {
		return ""
	}
	return text
}
