package notifytest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

func (n *compute) serveServers(c computeCall) (int, any) {
	if c.matches(http.MethodGet, 1) && c.parts[1] == "detail" {
		return serverPage(c, n.listServers(c))
	}
	i := -1
	if len(c.parts) > 1 {
		i = slices.IndexFunc(n.servers, func(s *Server) bool { return s.ID == c.parts[1] })
	}
	switch {
	case i < 0:
		return notFound("Instance", strings.Join(c.parts[1:], "/"))
	case c.matches(http.MethodGet, 1):
		return http.StatusOK, map[string]any{"server": n.showServer(n.servers[i])}
	case c.matches(http.MethodDelete, 1) && n.softDelete:
		n.servers[i].SoftDeleted = true
		return http.StatusNoContent, nil
	case c.matches(http.MethodDelete, 1):
		n.deleteServer(i)
		return http.StatusNoContent, nil
	case c.matches(http.MethodPost, 2) && c.parts[2] == "action":
		return n.serveServerAction(i, c)
	}
	return notFound("Instance", strings.Join(c.parts[1:], "/"))
}

// deleteServer deletes a server. As in Nova, this confirms an unconfirmed resize of the server.
func (n *compute) deleteServer(i int) {
	s := n.servers[i]
	s.Deleted = true
	if s.PollsUntilGone == 0 {
		n.servers = slices.Delete(n.servers, i, i+1)
		n.release(s)
	}
}

// release deletes the allocations of a server that is gone.
func (n *compute) release(s *Server) {
	if m := n.unconfirmed(s.ID); m != nil {
		n.confirm(m)
	}
	n.move(s.ID, "")
}

// serveServerAction performs an action of a server. As in Nova, only forceDelete deletes a server that is
// soft-deleted, and a server that is soft-deleted or being deleted has no image made of it.
func (n *compute) serveServerAction(i int, c computeCall) (int, any) {
	s := n.servers[i]
	made := image{ID: uuid.NewString(), Metadata: map[string]string{}}
	_, forceDelete := c.body["forceDelete"]
	_, restore := c.body["restore"]
	_, confirm := c.body["confirmResize"]
	_, revert := c.body["revertResize"]
	switch {
	case confirm || revert || c.body["resize"] != nil:
		return n.serveResize(s, c)
	case forceDelete:
		n.deleteServer(i)
	case c.body["os-resetState"] != nil:
		n.resetState(s)
	case restore && (!s.SoftDeleted || s.Deleted):
		return conflict("Cannot 'restore' instance %s while it is in its current state", s.ID)
	case restore:
		s.SoftDeleted = false
	case json.Unmarshal(c.body["createImage"], &made) != nil:
		return badRequest("no such action")
	case len([]rune(made.Name)) > 255:
		return badRequest("Invalid input for field/attribute name. Value: %s", made.Name)
	case s.SoftDeleted || s.Deleted:
		return conflict("Cannot 'createImage' instance %s while it is in its current state", s.ID)
	default:
		n.images = append(n.images, made)
	}
	return http.StatusAccepted, nil
}

// image is an image of a server.
type image struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Metadata map[string]string `json:"metadata"`
}

// serveImages lists the images with the metadata that the parameters property-KEY of the query name.
func (n *compute) serveImages(c computeCall) (int, any) {
	if !c.matches(http.MethodGet, 1) || c.parts[1] != "detail" {
		return notFound("Image", strings.Join(c.parts[1:], "/"))
	}
	all := slices.DeleteFunc(slices.Clone(n.images), func(made image) bool {
		for parameter, values := range c.URL.Query() {
			key, is := strings.CutPrefix(parameter, "property-")
			if is && made.Metadata[key] != values[0] {
				return true
			}
		}
		return false
	})
	return http.StatusOK, map[string]any{"images": append([]image{}, all...)}
}

// listServers lists the servers that match the query. As in Nova, a list contains servers that are
// soft-deleted only with the parameter soft_deleted, and no server by a flavor that does not exist. Each call
// to listServers decreases PollsUntilGone of each deleted server by one.
func (n *compute) listServers(c computeCall) []map[string]any {
	query, all := c.URL.Query(), []map[string]any{}
	n.servers = slices.DeleteFunc(n.servers, func(s *Server) bool {
		if host := query.Get("host"); host != "" && host != s.Host {
			return false
		}
		if id := query.Get("uuid"); id != "" && id != s.ID {
			return false
		}
		if flavor := query.Get("flavor"); flavor != "" && (flavor != s.Flavor || !n.hasFlavor(flavor)) {
			return false
		}
		if s.SoftDeleted && query.Get("soft_deleted") == "" {
			return false
		}
		if s.Deleted {
			s.PollsUntilGone--
		}
		if s.Deleted && s.PollsUntilGone < 0 {
			n.release(s)
			return true
		}
		all = append(all, n.showServer(s))
		return false
	})
	return all
}

func (n *compute) showServer(s *Server) map[string]any {
	status, task := n.serverState(s)
	return map[string]any{
		"id":                    s.ID,
		"name":                  s.Name,
		"tenant_id":             s.Project,
		"created":               s.Created.UTC().Format(time.RFC3339),
		"status":                status,
		"OS-EXT-STS:task_state": task,
		"OS-EXT-SRV-ATTR:host":  s.Host,
		"flavor":                map[string]any{"id": s.Flavor},
		"metadata":              map[string]string{"k": strings.Repeat("x", s.MetadataSize)},
	}
}

// serverPage answers with the page of a list of servers that the parameters limit and marker of the query
// select. As in Nova, a full page has a link to the next one.
func serverPage(c computeCall, all []map[string]any) (int, any) {
	query := c.URL.Query()
	if marker := query.Get("marker"); marker != "" {
		i := slices.IndexFunc(all, func(s map[string]any) bool { return s["id"] == marker })
		if i < 0 {
			return badRequest("marker [%s] not found", marker)
		}
		all = all[i+1:]
	}
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || len(all) < limit {
		return http.StatusOK, map[string]any{"servers": all}
	}
	all = all[:limit]
	query.Set("marker", all[limit-1]["id"].(string))
	next := "http://" + c.Host + c.URL.Path + "?" + query.Encode()
	return http.StatusOK, map[string]any{
		"servers":       all,
		"servers_links": []map[string]string{{"rel": "next", "href": next}},
	}
}
