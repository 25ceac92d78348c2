package journal

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"

	"berth/internal/api/osapi"
	"berth/internal/journal"
	"berth/internal/store"
)

// maxChanges bounds how many changes one request records.
const maxChanges = 1000

// change is one change of an object that berth has no API for. The data of a create or update is the whole object.
type change struct {
	Operation journal.Operation `json:"operation"`
	Type      string            `json:"object_type"`
	Object    string            `json:"object_id"`
	Data      json.RawMessage   `json:"data"`
	Project   string            `json:"project_id"`
	Name      string            `json:"name"`
}

// record records changes in one transaction: all or none.
func (h handlers) record(r *http.Request) (int, any, error) {
	var body struct {
		Entries []change `json:"entries"`
	}
	if err := osapi.Decode(r, &body); err != nil {
		return 0, nil, err
	}
	if len(body.Entries) == 0 || len(body.Entries) > maxChanges {
		return 0, nil, osapi.Fault(http.StatusBadRequest, "", "'entries' must hold 1 to %d changes.", maxChanges)
	}
	changes := make([]journal.Change, len(body.Entries))
	for i, c := range body.Entries {
		var err error
		if changes[i], err = changeOf(c); err != nil {
			return 0, nil, osapi.Fault(http.StatusBadRequest, "", "Entry %d of the request: %s.", i+1, err)
		}
	}
	entries, err := h.store.RecordChanges(r.Context(), changes)
	switch {
	case errors.Is(err, store.ErrConflict):
		return 0, nil, osapi.Fault(http.StatusConflict, "", "An object to create exists already; nothing was recorded.")
	case errors.Is(err, store.ErrNotFound):
		return 0, nil, osapi.Fault(http.StatusNotFound, "", "An object to update or delete does not exist; nothing was recorded.")
	case err != nil:
		return 0, nil, err
	}
	return http.StatusCreated, map[string]any{"entries": entriesOf(entries)}, nil
}

// maxText bounds names, in bytes.
const maxText = 255

// changeOf checks a change. Whether the object exists, the store finds out.
func changeOf(c change) (journal.Change, error) {
	out := journal.Change{Object: journal.Ref{Type: c.Type, ID: c.Object}, Operation: c.Operation, Data: c.Data, Project: c.Project, Name: c.Name}
	_, isUUID := osapi.UUID(c.Object)
	switch {
	case !journal.Known(c.Type):
		return out, errors.New("the controller has no objects of that type")
	case journal.Ours(c.Type):
		return out, errors.New("objects of that type are made and changed at /networking")
	case !isUUID:
		return out, errors.New("'object_id' is not a UUID")
	case len(c.Project) > maxText || len(c.Name) > maxText:
		return out, errors.New("'project_id' or 'name' is too long")
	case c.Operation == journal.Delete && len(c.Data) > 0:
		return out, errors.New("a delete has no data")
	case c.Operation == journal.Delete:
		return out, nil
	}
	var object struct {
		ID      *string `json:"id"`
		Name    string  `json:"name"`
		Project string  `json:"project_id"`
		Tenant  string  `json:"tenant_id"`
	}
	if err := json.Unmarshal(c.Data, &object); err != nil || object.ID == nil || *object.ID != c.Object {
		return out, errors.New("'data' must be the whole object, with the 'object_id' as its 'id' and texts as its name and project")
	}
	if _, err := journal.RequestOf(journal.Entry{Object: out.Object, Operation: c.Operation, Data: c.Data}); err != nil {
		return out, err
	}
	out.Name, out.Project = cmp.Or(c.Name, brief(object.Name)), cmp.Or(c.Project, brief(object.Project), brief(object.Tenant))
	return out, nil
}

// brief is the text if it is one that is kept.
func brief(text string) string {
	if len(text) > maxText {
		return ""
	}
	return text
}
