package notifytest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

func (n *compute) serveServers(c computeCall) (int, any) {
	if c.matches(http.MethodGet, 1) {
		return http.StatusOK, map[string]any{"servers": n.listServers(c)}
	}
	i := -1
	if len(c.parts) > 1 {
		i = slices.IndexFunc(n.servers, func(s *Server) bool { return s.ID == c.parts[1] })
	}
	switch {
	case i < 0:
		return notFound("Instance", strings.Join(c.parts[1:], "/"))
	case c.matches(http.MethodDelete, 1):
		n.servers[i].Deleted = true
		if n.servers[i].PollsUntilGone == 0 {
			n.servers = slices.Delete(n.servers, i, i+1)
		}
		return http.StatusNoContent, nil
	}
	var image struct{ Name string }
	if json.Unmarshal(c.body["createImage"], &image) != nil {
		return badRequest("no such action")
	}
	n.images = append(n.images, image.Name)
	return http.StatusAccepted, nil
}

// listServers lists the servers that match the query. Each call to listServers decreases PollsUntilGone of
// each deleted server by one.
func (n *compute) listServers(c computeCall) []any {
	query, all := c.URL.Query(), []any{}
	n.servers = slices.DeleteFunc(n.servers, func(s *Server) bool {
		if host := query.Get("host"); host != "" && host != s.Host {
			return false
		}
		if flavor := query.Get("flavor"); flavor != "" && flavor != s.Flavor {
			return false
		}
		if s.Deleted {
			s.PollsUntilGone--
		}
		if s.Deleted && s.PollsUntilGone < 0 {
			return true
		}
		all = append(all, map[string]any{
			"id":                   s.ID,
			"name":                 s.Name,
			"status":               "ACTIVE",
			"OS-EXT-SRV-ATTR:host": s.Host,
			"flavor":               map[string]any{"id": s.Flavor},
		})
		return false
	})
	return all
}
