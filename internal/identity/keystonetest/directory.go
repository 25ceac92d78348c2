package keystonetest

import (
	"net/http"
	"slices"
)

// Service adds an endpoint to the catalogue that is part of every token.
func (s *Server) Service(typ, url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var endpoints []object
	for _, face := range []string{"public", "internal", "admin"} {
		endpoints = append(endpoints, object{"id": typ + "-" + face, "interface": face, "region": "RegionOne", "region_id": "RegionOne", "url": url})
	}
	s.catalog = append(s.catalog, object{"id": typ, "type": typ, "name": typ, "endpoints": endpoints})
}

// version is the version document that clients read before they log in.
func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, object{"version": object{"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
		"links": []object{{"rel": "self", "href": s.URL + "/v3/"}}, "media-types": []object{}}})
}

// projects lists the projects of all users, or the one with the name in the query. A project's ID is its name.
func (s *Server) projects(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.live(r.Header.Get("X-Auth-Token")); !ok {
		refuse(w, http.StatusUnauthorized)
		return
	}
	found := []object{}
	for _, name := range s.names() {
		if want := r.URL.Query().Get("name"); want == "" || want == name {
			found = append(found, viewProject(name))
		}
	}
	write(w, http.StatusOK, object{"projects": found, "links": object{"next": nil, "previous": nil}})
}

func (s *Server) project(w http.ResponseWriter, r *http.Request) {
	_, ok := s.live(r.Header.Get("X-Auth-Token"))
	switch {
	case !ok:
		refuse(w, http.StatusUnauthorized)
	case !slices.Contains(s.names(), r.PathValue("id")):
		refuse(w, http.StatusNotFound)
	default:
		write(w, http.StatusOK, object{"project": viewProject(r.PathValue("id"))})
	}
}

func (s *Server) names() (names []string) {
	for _, u := range s.users {
		names = append(names, u.project)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func viewProject(name string) object {
	return object{"id": name, "name": name, "domain_id": "default", "enabled": true, "is_domain": false, "parent_id": "default", "description": "", "tags": []string{}}
}
