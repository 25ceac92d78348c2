package neutron

import (
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"

	"berth/internal/api/osapi"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/portstore"
)

// quotas handles the limits on the resources of each project. By default, other callers than administrators
// and services may only read the limits of the caller's own project.
type quotas struct{ store *portstore.Store }

func (q quotas) routes() []osapi.Route {
	const path = "/v2.0/quotas/{project}"
	return []osapi.Route{
		{Method: http.MethodGet, Path: "/v2.0/quotas", Handle: q.list},
		{Method: http.MethodGet, Path: "/v2.0/quotas/tenant", Handle: currentProject("tenant")},
		{Method: http.MethodGet, Path: "/v2.0/quotas/project", Handle: currentProject("project")},
		{Method: http.MethodGet, Path: path, Handle: q.show},
		{Method: http.MethodPut, Path: path, Handle: q.update},
		{Method: http.MethodDelete, Path: path, Handle: q.remove},
		{Method: http.MethodGet, Path: path + "/default", Handle: q.byDefault},
		{Method: http.MethodGet, Path: path + "/details", Handle: q.details},
	}
}

// currentProject answers with the caller's project, under the key "tenant" or "project".
func currentProject(word string) osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		project := caller(r).Project
		if project == "" {
			return 0, nil, osapi.Fault(http.StatusBadRequest, "QuotaMissingTenant",
				"Tenant-id was missing from quota request.")
		}
		return http.StatusOK, object{word: object{word + "_id": project}}, nil
	}
}

// project returns the project that the path names. project returns an error if the rule does not allow the
// caller the quota of the project in the path.
func (q quotas) project(r *http.Request, rule string) (string, error) {
	project := pathValue(r, "project")
	if err := accessOf(r).require([]string{rule}, owned(project), nil); err != nil {
		return "", err
	}
	if len(project) > 255 {
		return "", badRequest("The project's name is longer than 255 bytes")
	}
	return project, nil
}

func (q quotas) list(r *http.Request) (int, any, error) {
	if err := accessOf(r).require([]string{"get_quota"}, nil, nil); err != nil {
		return 0, nil, err
	}
	all, err := q.store.Quotas(r.Context())
	if err != nil {
		return 0, nil, err
	}
	list := []object{}
	for _, project := range slices.Sorted(maps.Keys(all)) {
		o := viewQuota(all[project])
		o["project_id"], o["tenant_id"] = project, project
		list = append(list, o)
	}
	return http.StatusOK, object{"quotas": list}, nil
}

func viewQuota(q network.Quota) object {
	o := object{}
	for resource, limit := range q {
		o[resource] = limit
	}
	return o
}

func (q quotas) show(r *http.Request) (int, any, error) {
	project, err := q.project(r, "get_quota")
	if err != nil {
		return 0, nil, err
	}
	return q.respond(r, project)
}

func (q quotas) respond(r *http.Request, project string) (int, any, error) {
	limits, err := q.store.Quota(r.Context(), project)
	return http.StatusOK, object{"quota": attribute.Select(viewQuota(limits), requestedFields(r))}, err
}

func (q quotas) byDefault(r *http.Request) (int, any, error) {
	if _, err := q.project(r, "get_quota"); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, object{"quota": viewQuota(q.store.DefaultQuota())}, nil
}

func (q quotas) details(r *http.Request) (int, any, error) {
	project, err := q.project(r, "get_quota")
	if err != nil {
		return 0, nil, err
	}
	limits, err := q.store.Quota(r.Context(), project)
	if err != nil {
		return 0, nil, err
	}
	used, err := q.store.QuotaUsage(r.Context(), project)
	if err != nil {
		return 0, nil, err
	}
	o := object{}
	for resource, limit := range limits {
		o[resource] = object{"limit": limit, "used": used[resource], "reserved": 0}
	}
	return http.StatusOK, object{"quota": o}, nil
}

func (q quotas) update(r *http.Request) (int, any, error) {
	project, err := q.project(r, "update_quota")
	if err != nil {
		return 0, nil, err
	}
	envelope, err := readEnvelope(r)
	if err != nil {
		return 0, nil, err
	}
	raw, ok := envelope["quota"]
	if !ok || len(envelope) != 1 {
		return 0, nil, badRequest("Unable to find 'quota' in request body")
	}
	limits, check, err := decodeQuota(raw, project)
	if err != nil {
		return 0, nil, err
	}
	set := q.store.SetQuota
	if check {
		set = q.store.SetQuotaAboveUsage
	}
	if err := set(r.Context(), project, limits); err != nil {
		return 0, nil, err
	}
	return q.respond(r, project)
}

// decodeQuota reads the new limits of the project. The result `check` is true if berth must refuse a limit
// that is lower than the project's current usage.
func decodeQuota(raw json.RawMessage, project string) (limits network.Quota, check bool, err error) {
	given, err := attribute.Dict(
		raw,
		append([]string{"project_id", "tenant_id", "check_limit", "force"}, network.QuotaResources()...)...)
	if err != nil {
		return nil, false, invalid("quota", err)
	}
	limits = network.Quota{}
	for _, resource := range network.QuotaResources() {
		raw, ok := given[resource]
		if !ok {
			continue
		}
		limit, err := attribute.Int(network.Unlimited, math.MaxInt32)(raw)
		if err != nil {
			return nil, false, invalid(resource, err)
		}
		limits[resource] = int64(limit)
	}
	flags := map[string]bool{"check_limit": true}
	for _, name := range []string{"check_limit", "force"} {
		if raw, ok := given[name]; ok {
			if flags[name], err = attribute.Bool(raw); err != nil {
				return nil, false, err
			}
		}
	}
	return limits, flags["check_limit"] && !flags["force"], checkBodyProject(given, project)
}

// checkBodyProject returns an error if the request body names another project than the request path.
func checkBodyProject(given map[string]json.RawMessage, project string) error {
	for _, name := range []string{"project_id", "tenant_id"} {
		if raw, ok := given[name]; ok {
			if s, err := attribute.Text(255)(raw); err != nil || s != project {
				return badRequest("'%s' is not the project in the path", name)
			}
		}
	}
	return nil
}

func (q quotas) remove(r *http.Request) (int, any, error) {
	project, err := q.project(r, "delete_quota")
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, q.store.ResetQuota(r.Context(), project)
}
