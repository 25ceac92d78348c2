package operator

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/portstore"
)

// blocks handles the requests about the provisioning blocks of ports and trunks. The blocks of the entities
// DHCP and L2 follow from berth's rules; a client can add and remove blocks of all other entities.
type blocks struct{ store *portstore.Store }

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
	a, err := b.answer(r, o)
	return http.StatusOK, a, err
}

// blockBody is the JSON format of a request that adds a block.
type blockBody struct {
	Host    string `json:"host"`
	Owner   string `json:"owner"`
	Timeout int64  `json:"timeout_seconds"`
	Fatal   bool   `json:"fatal"`
}

// completionBody is the JSON format of a request that completes a block.
type completionBody struct {
	Host string `json:"host"`
}

// add adds a block, and answers 201, or 200 if the object already waits for the entity, or 409 if the object
// can have no more blocks.
func (b blocks) add(r *http.Request) (int, any, error) {
	var body blockBody
	if err := osapi.Decode(r, &body); err != nil {
		return 0, nil, err
	}
	o, entity, err := blockedByEntity(r)
	if err != nil {
		return 0, nil, err
	}
	report := network.Report{
		Entity:         entity,
		Host:           body.Host,
		Event:          network.ReportBlock,
		Owner:          cmp.Or(body.Owner, identity.From(r.Context()).User),
		TimeoutSeconds: body.Timeout,
		Fatal:          body.Fatal,
	}
	if err := network.CheckOwnedBlock(report); err != nil {
		return 0, nil, osapi.Fault(http.StatusBadRequest, "", "Invalid input: %v.", err)
	}
	added, err := b.store.AddBlock(r.Context(), o, report)
	if err != nil {
		return 0, nil, err
	}
	a, err := b.answer(r, o)
	switch {
	case err != nil:
		return 0, nil, err
	case added:
		return http.StatusCreated, a, nil
	case !slices.ContainsFunc(a.Blocks, func(b block) bool { return b.Entity == entity }):
		return 0, nil, osapi.Fault(http.StatusConflict, "", "The %s %s already has %d blocks.",
			o.Type, o.ID, len(a.Blocks))
	default:
		return http.StatusOK, a, nil
	}
}

// complete records that the entity has done its part for the object. The answer to a repeated request is the
// same.
func (b blocks) complete(r *http.Request) (int, any, error) {
	var body completionBody
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
	a, err := b.answer(r, o)
	return http.StatusOK, a, err
}

// remove removes a block although the entity has not completed its part.
func (b blocks) remove(r *http.Request) (int, any, error) {
	o, entity, err := blockedByEntity(r)
	if err != nil {
		return 0, nil, err
	}
	removed, err := b.store.RemoveBlock(r.Context(), o, entity)
	if err == nil && !removed {
		err = osapi.Fault(http.StatusNotFound, "", "The %s %s has no block of the entity %s.",
			o.Type, o.ID, entity)
	}
	return http.StatusNoContent, nil, err
}

// answer reads the blocks of an object.
func (b blocks) answer(r *http.Request, o portstore.Object) (blocksAnswer, error) {
	found, err := b.store.Blocks(r.Context(), o)
	if errors.Is(err, db.ErrNotFound) {
		return blocksAnswer{}, osapi.Fault(http.StatusNotFound, "", "There is no %s %s.", o.Type, o.ID)
	}
	a := blocksAnswer{
		Type:    o.Type,
		ID:      o.ID.String(),
		Blocked: len(found) > 0,
		Blocks:  make([]block, len(found)),
	}
	for i, f := range found {
		a.Blocks[i] = block{f.Entity, f.Host, f.Owner, f.Since, f.Deadline, f.Fatal, f.Sentence(time.Now())}
	}
	return a, err
}

// blockedObject returns the object that the path names.
func blockedObject(r *http.Request) (portstore.Object, error) {
	o := portstore.Object{Type: r.PathValue("type")}
	id, ok := osapi.UUID(r.PathValue("id"))
	if o.ID = id; !ok || o.Type != "port" && o.Type != "trunk" {
		return o, osapi.Fault(http.StatusNotFound, "", "There is no %s %s.", o.Type, r.PathValue("id"))
	}
	return o, nil
}

// blockedByEntity returns the object and the entity that the path names. It refuses the entities whose blocks
// follow from berth's rules.
func blockedByEntity(r *http.Request) (portstore.Object, string, error) {
	o, err := blockedObject(r)
	entity := r.PathValue("entity")
	if err == nil {
		if invalid := network.CheckEntity(entity); invalid != nil {
			err = osapi.Fault(http.StatusBadRequest, "", "Invalid input: %v.", invalid)
		}
	}
	return o, entity, err
}
