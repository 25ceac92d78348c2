package operator

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/contract"
	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
)

// blocks handles the requests about the provisioning blocks of ports and trunks. The blocks of the entities DHCP and L2 follow from berth's
// rules; a client can add and remove blocks of all other entities.
type blocks struct{ store *networkstore.Store }

// maxNameLength is the maximum length of the names of an entity, a host and an owner, in bytes.
const maxNameLength = 255

// block is the JSON format of a provisioning block.
type block struct {
	Entity   string     `json:"entity"`
	Host     string     `json:"host"`
	Owner    string     `json:"owner"`
	Since    time.Time  `json:"since"`
	Deadline *time.Time `json:"deadline"`
	Fatal    bool       `json:"fatal"`
	Sentence string     `json:"sentence"`
}

type blocksAnswer struct {
	Type    string  `json:"object_type"`
	ID      string  `json:"object_id"`
	Blocked bool    `json:"blocked"`
	Blocks  []block `json:"blocks"`
}

// list lists the blocks of an object.
func (b blocks) list(r *http.Request) (int, any, error) {
	o, err := blockedObject(r)
	if err != nil {
		return 0, nil, err
	}
	return b.answer(r, http.StatusOK, o)
}

// add adds a block, and answers 201, or 200 if the object already waits for the entity.
func (b blocks) add(r *http.Request) (int, any, error) {
	var body struct {
		Host    string `json:"host"`
		Owner   string `json:"owner"`
		Timeout int64  `json:"timeout_seconds"`
		Fatal   bool   `json:"fatal"`
	}
	if err := osapi.Decode(r, &body); err != nil {
		return 0, nil, err
	}
	o, entity, err := blockedByEntity(r)
	switch {
	case err != nil:
		return 0, nil, err
	case len(body.Host) > maxNameLength || len(body.Owner) > maxNameLength:
		return 0, nil, osapi.Fault(http.StatusBadRequest, "", "'host' and 'owner' must have at most %d bytes.", maxNameLength)
	case body.Timeout < 0 || body.Timeout > contract.MaxBlockSeconds:
		return 0, nil, osapi.Fault(http.StatusBadRequest, "", "'timeout_seconds' must be between 0 and %d.", contract.MaxBlockSeconds)
	}
	added, err := b.store.AddBlock(r.Context(), o, network.Report{Entity: entity, Host: body.Host, Event: network.ReportBlock, Fatal: body.Fatal,
		Owner: cmp.Or(body.Owner, identity.From(r.Context()).User), Timeout: time.Duration(body.Timeout) * time.Second})
	if err != nil {
		return 0, nil, err
	}
	if added {
		return b.answer(r, http.StatusCreated, o)
	}
	return b.answer(r, http.StatusOK, o)
}

// complete records that the entity has done its part for the object. The answer to a repeated request is the same.
func (b blocks) complete(r *http.Request) (int, any, error) {
	var body struct {
		Host string `json:"host"`
	}
	if err := osapi.Decode(r, &body); err != nil {
		return 0, nil, err
	}
	o, entity, err := blockedByEntity(r)
	if err != nil {
		return 0, nil, err
	}
	if _, _, err := b.store.CompleteBlock(r.Context(), o, network.Report{Entity: entity, Host: body.Host}); err != nil {
		return 0, nil, err
	}
	return b.answer(r, http.StatusOK, o)
}

// remove removes a block although the entity has not completed its part.
func (b blocks) remove(r *http.Request) (int, any, error) {
	o, entity, err := blockedByEntity(r)
	if err != nil {
		return 0, nil, err
	}
	removed, err := b.store.RemoveBlock(r.Context(), o, entity)
	if err == nil && !removed {
		err = osapi.Fault(http.StatusNotFound, "", "The %s %s has no block of the entity %s.", o.Type, o.ID, entity)
	}
	return http.StatusNoContent, nil, err
}

// answer reads the blocks of an object.
func (b blocks) answer(r *http.Request, status int, o networkstore.Object) (int, any, error) {
	found, err := b.store.Blocks(r.Context(), o)
	if errors.Is(err, db.ErrNotFound) {
		return 0, nil, osapi.Fault(http.StatusNotFound, "", "There is no %s %s.", o.Type, o.ID)
	}
	if err != nil {
		return 0, nil, err
	}
	a := blocksAnswer{Type: o.Type, ID: o.ID.String(), Blocked: len(found) > 0, Blocks: make([]block, len(found))}
	for i, f := range found {
		a.Blocks[i] = block{f.Entity, f.Host, f.Owner, f.Since, f.Deadline, f.Fatal, f.Sentence()}
	}
	return status, a, nil
}

// blockedObject returns the object that the path names.
func blockedObject(r *http.Request) (networkstore.Object, error) {
	o := networkstore.Object{Type: r.PathValue("type")}
	id, ok := osapi.UUID(r.PathValue("id"))
	if o.ID = id; !ok || o.Type != "port" && o.Type != "trunk" {
		return o, osapi.Fault(http.StatusNotFound, "", "There is no %s %s.", o.Type, r.PathValue("id"))
	}
	return o, nil
}

// blockedByEntity returns the object and the entity that the path names. It refuses the entities whose blocks follow from berth's rules.
func blockedByEntity(r *http.Request) (networkstore.Object, string, error) {
	o, err := blockedObject(r)
	entity := r.PathValue("entity")
	switch {
	case err != nil:
		return o, entity, err
	case entity == network.DHCP || entity == network.L2:
		return o, entity, osapi.Fault(http.StatusBadRequest, "", "The blocks of %s follow from the state of the port; agents complete them.", entity)
	case len(entity) > maxNameLength:
		return o, entity, osapi.Fault(http.StatusBadRequest, "", "The name of an entity must have at most %d bytes.", maxNameLength)
	}
	return o, entity, nil
}
