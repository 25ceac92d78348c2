package notifytest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Migration is the resize of a server to another flavor, which also moves the server to the host of Nova's
// choice. The status is finished until the resize is confirmed or reverted.
type Migration struct {
	UUID      string `json:"uuid"`
	Server    string `json:"instance_uuid"`
	Source    string `json:"source_compute"`
	Type      string `json:"migration_type"`
	Status    string `json:"status"`
	oldFlavor string
	forgotten bool // an operator has reset the state of the server, and the status stays what it is
}

// SetMigrationStatus sets the status of the migrations of a server, as if Nova were still at work on them.
func (n *Nova) SetMigrationStatus(server, status string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.compute.migrations {
		if m.Server == server {
			m.Status = status
		}
	}
}

// MoveServer sets the host of a server, as Nova's scheduler chooses it for a resize.
func (n *Nova) MoveServer(server, host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.compute.servers {
		if s.ID == server {
			s.Host = host
		}
	}
}

// unconfirmed returns the migration of a server that is neither confirmed nor reverted, or nil.
func (n *compute) unconfirmed(server string) *Migration {
	for _, m := range n.migrations {
		if m.Server == server && !m.forgotten && m.Status != "confirmed" && m.Status != "reverted" {
			return m
		}
	}
	return nil
}

// serveResize performs the actions resize, confirmResize and revertResize of a server. As in Nova, the
// server has its new flavor immediately, and its allocations from the old host belong to the migration until
// the resize is confirmed or reverted.
func (n *compute) serveResize(s *Server, c computeCall) (int, any) {
	var resize struct {
		Flavor string `json:"flavorRef"`
	}
	_, confirm := c.body["confirmResize"]
	m := n.unconfirmed(s.ID)
	switch {
	case c.body["resize"] == nil && m == nil:
		return conflict("Cannot 'confirmResize' instance %s while it is in vm_state active", s.ID)
	case c.body["resize"] == nil && confirm:
		n.confirm(m)
	case c.body["resize"] == nil:
		m.Status, s.Flavor, s.Host = "reverted", m.oldFlavor, m.Source
		n.move(m.UUID, s.ID)
	case json.Unmarshal(c.body["resize"], &resize) != nil || !n.hasFlavor(resize.Flavor):
		return badRequest("Flavor %s could not be found.", resize.Flavor)
	case m != nil || s.SoftDeleted || s.Deleted:
		return conflict("Cannot 'resize' instance %s while it is in its current state", s.ID)
	default:
		m := &Migration{
			UUID:      uuid.NewString(),
			Server:    s.ID,
			Source:    s.Host,
			Type:      "resize",
			Status:    "finished",
			oldFlavor: s.Flavor,
		}
		n.migrations = append(n.migrations, m)
		s.Flavor = resize.Flavor
		n.move(s.ID, m.UUID)
	}
	return http.StatusAccepted, nil
}

// serverState returns the status of a server and the state of the task that Nova performs for it, if any.
func (n *compute) serverState(s *Server) (status string, task any) {
	status = "ACTIVE"
	if m := n.unconfirmed(s.ID); m != nil {
		switch m.Status {
		case "post-migrating":
			status, task = "RESIZE", "resize_migrated"
		case "reverting":
			status, task = "REVERT_RESIZE", "resize_reverting"
		default:
			status = "VERIFY_RESIZE"
		}
	}
	if s.SoftDeleted {
		status = "SOFT_DELETED"
	}
	if s.Deleted {
		task = "deleting"
	}
	return status, task
}

// resetState makes a server active. As in Nova, this ends no migration of the server.
func (n *compute) resetState(s *Server) {
	if m := n.unconfirmed(s.ID); m != nil {
		m.forgotten = true
	}
}

func (n *compute) confirm(m *Migration) {
	m.Status = "confirmed"
	n.move(m.UUID, "")
}

// move moves the allocations of a consumer in Placement, or deletes them if `to` is empty.
func (n *compute) move(from, to string) {
	if n.moveAllocations != nil {
		n.moveAllocations(from, to)
	}
}

func (n *compute) hasFlavor(id string) bool {
	return slices.ContainsFunc(n.flavors, func(f *Flavor) bool { return f.ID == id })
}

// serveMigrations lists the migrations that match the query. As in Nova, the list needs a newer microversion
// to contain the UUIDs of the migrations.
func (n *compute) serveMigrations(c computeCall) (int, any) {
	if !c.matches(http.MethodGet, 0) {
		return notFound("Migration", strings.Join(c.parts[1:], "/"))
	}
	all := []Migration{}
	for _, m := range n.migrations {
		query, shown := c.URL.Query(), *m
		if query.Has("status") && query.Get("status") != m.Status ||
			query.Has("migration_type") && query.Get("migration_type") != m.Type {
			continue
		}
		if c.Header.Get("OpenStack-API-Version") != "compute 2.59" {
			shown.UUID = ""
		}
		all = append(all, shown)
	}
	return http.StatusOK, map[string]any{"migrations": all}
}
