package console

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store/db"
)

// trunk reads the page of a trunk. Its timeline has the trunk and its journal entries.
func (c *handler) trunk(ctx context.Context, q query) (any, error) {
	id, err := idOf(q, "trunk")
	if err != nil {
		return nil, err
	}
	t, err := c.Network.Trunk(ctx, id)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	ports, err := c.Network.Ports(ctx, db.Listing{Where: []db.Condition{trunkPorts(t)}})
	if err != nil {
		return nil, err
	}
	for i := range ports {
		ports[i] = ports[i].WithAgentHosts()
	}
	v := trunkView(t, ports, now)
	if err := c.addJournal(ctx, &v, t.ID.String()); err != nil {
		return nil, err
	}
	v.newestFirst(now)
	return v, nil
}

// projectTrunk reads the page of a trunk without the journal, and without the statuses of ports that the
// caller may not see.
func (c *handler) projectTrunk(ctx context.Context, q query) (any, error) {
	id, err := idOf(q, "trunk")
	if err != nil {
		return nil, err
	}
	t, err := c.ownTrunk(ctx, q.caller, id)
	if err != nil {
		return nil, err
	}
	l := inProject(q.caller)
	l.Where = append(l.Where, trunkPorts(t))
	ports, err := c.Ports.List(ctx, q.caller, l)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	v := trunkView(t, ports, now)
	v.newestFirst(now)
	return v, nil
}

// ownTrunk reads a trunk of the caller's project.
func (c *handler) ownTrunk(ctx context.Context, caller identity.Caller, id uuid.UUID) (network.Trunk, error) {
	l := inProject(caller)
	l.Where = append(l.Where, db.OneOfIDs("id", []uuid.UUID{id}))
	found, err := c.Trunks.List(ctx, caller, l)
	if err != nil {
		return network.Trunk{}, err
	}
	if len(found) == 0 {
		return network.Trunk{}, osapi.Fault(http.StatusNotFound, "", "There is no trunk %s.", id)
	}
	return found[0], nil
}

// addOwnTrunk adds the trunk of a port to its page, if the caller may see the trunk.
func (c *handler) addOwnTrunk(
	ctx context.Context,
	v *objectView,
	caller identity.Caller,
	port uuid.UUID,
) error {
	id, err := c.Network.TrunkOfPort(ctx, port)
	if err != nil || id == uuid.Nil {
		return err
	}
	if _, err := c.ownTrunk(ctx, caller, id); err != nil {
		return unlessNotFound(err)
	}
	v.addTrunk(id)
	return nil
}

// addTrunk adds the trunk of a port to its attributes. A port that belongs to no trunk has uuid.Nil.
func (v *objectView) addTrunk(id uuid.UUID) {
	if id != uuid.Nil {
		v.Facts = append(v.Facts, fact{Name: "Trunk", Value: id.String(), Path: "/trunks/" + id.String()})
	}
}

// trunkPorts selects the ports that the page of a trunk shows: the parent port and the first subports.
func trunkPorts(t network.Trunk) db.Condition {
	ids := []uuid.UUID{t.Port}
	for _, s := range t.Subports[:min(len(t.Subports), maxParts)] {
		ids = append(ids, s.Port)
	}
	return db.OneOfIDs("id", ids)
}

// trunkView returns what the page of a trunk shows to administrators and to the project of the trunk. The
// page shows the status of the given ports only.
func trunkView(t network.Trunk, ports []network.Port, now time.Time) objectView {
	s := t.StatusViewAt(now)
	v := objectView{
		Kind:    "Trunk",
		Name:    named(t.Name, t.ID.String()),
		Status:  t.Status,
		Good:    t.Status == network.Active,
		Why:     s.Sentence(),
		Command: "starter why trunk/" + t.ID.String(),
	}
	byID := map[uuid.UUID]network.Port{}
	for _, p := range ports {
		byID[p.ID] = p
	}
	parent := portCells(t.Port, byID, now)
	v.Facts = []fact{
		{Name: "ID", Value: t.ID.String()},
		{Name: "Project", Value: t.Project},
		{Name: "Description", Value: t.Description},
		{Name: "Administratively up", Value: yesNo(t.AdminUp)},
		{Name: "Parent port", Value: parent[0].Value, Path: parent[0].Path},
		{Name: "Status of the parent port", Value: parent[1].Value},
		{Name: "Subports", Value: strconv.Itoa(len(t.Subports))},
	}
	v.Tables = []table{subportTable(t.Subports, byID, now)}
	v.addWaiting("trunk", s.Waiting)
	v.Timeline = append(v.Timeline, moment{At: t.CreatedAt, Part: "trunk", Text: "created"},
		moment{At: t.UpdatedAt, Part: "trunk", Text: fmt.Sprintf("last changed, revision %d", t.Revision)})
	return v
}

// subportTable lists the first subports of a trunk with their statuses.
func subportTable(subports []network.Subport, ports map[uuid.UUID]network.Port, now time.Time) table {
	t := table{Title: "Subports", Columns: []string{"Port", "Status", "Why", "Segmentation"}}
	if len(subports) > maxParts {
		subports, t.Title = subports[:maxParts], fmt.Sprintf("Subports (the first %d)", maxParts)
	}
	for _, s := range subports {
		t.Rows = append(t.Rows,
			append(portCells(s.Port, ports, now), fact{Value: fmt.Sprintf("%s %d", s.Type, s.Segment)}))
	}
	return t
}

// portCells returns the cells with the name, the status and the reason of a port. The page does not link to a
// port that the map does not contain, because the caller may not see it.
func portCells(id uuid.UUID, ports map[uuid.UUID]network.Port, now time.Time) []fact {
	p, ok := ports[id]
	if !ok {
		return []fact{{Value: id.String()}, {}, {}}
	}
	return []fact{
		{Value: named(p.Name, id.String()), Path: "/ports/" + id.String()},
		{Value: p.Status},
		{Value: portWhy(p, now)},
	}
}
