package keystonetest

import (
	"net/http"
	"slices"
)

// Service adds a service and its endpoints to the catalogue. Every token contains the catalogue.
func (s *Server) Service(typ, url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var endpoints []object
	for _, iface := range []string{"public", "internal", "admin"} {
		endpoints = append(endpoints, object{
			"id":        typ + "-" + iface,
			"interface": iface,
			"region":    "RegionOne",
			"region_id": "RegionOne",
			"url":       url,
		})
	}
	s.catalog = append(s.catalog, object{
		"id":        typ,
		"type":      typ,
		"name":      typ,
		"endpoints": endpoints,
	})
}

// version serves the version document of the Identity API, which clients read before they log in.
func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, object{"version": object{
		"id":          "v3.14",
		"status":      "stable",
		"updated":     "2020-04-07T00:00:00Z",
		"links":       []object{{"rel": "self", "href": s.URL + "/v3/"}},
		"media-types": []object{},
	}})
}

// projects lists the projects of all users; if the query contains a name, projects lists only the project
// with this name. In this stub of Keystone, the ID of a project is the name of the project.
func (s *Server) projects(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.findToken(r.Header.Get("X-Auth-Token")); !ok {
		writeError(w, http.StatusUnauthorized)
		return
	}
	found := []object{}
	for _, name := range s.projectNames() {
		if want := r.URL.Query().Get("name"); want == "" || want == name {
			found = append(found, viewProject(name))
		}
	}
	write(w, http.StatusOK, object{"projects": found, "links": object{"next": nil, "previous": nil}})
}

func (s *Server) project(w http.ResponseWriter, r *http.Request) {
	_, ok := s.findToken(r.Header.Get("X-Auth-Token"))
	switch {
	case !ok:
		writeError(w, http.StatusUnauthorized)
	case !slices.Contains(s.projectNames(), r.PathValue("id")):
		writeError(w, http.StatusNotFound)
	default:
		write(w, http.StatusOK, object{"project": viewProject(r.PathValue("id"))})
	}
}

// projectNames returns the projects of all users, sorted.
func (s *Server) projectNames() (names []string) {
	for _, u := range s.users {
		names = append(names, u.project)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func viewProject(name string) object {
	return object{
		"id":          name,
		"name":        name,
		"domain_id":   "default",
		"enabled":     true,
		"is_domain":   false,
		"parent_id":   "default",
		"description": "",
		"tags":        []string{},
	}
}
