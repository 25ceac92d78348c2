package odltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// resource describes one collection of the northbound API and its objects.
type resource struct {
	objectType   string   // type and envelope of one object
	path         string   // path of the collection
	plural       string   // envelope of a list; empty: the type with an s
	immutable    []string // attributes that an update does not change
	keptOnUpdate []string // attributes that an update keeps if it does not set them
	// type of the parent by attribute; "list.attribute" means the attribute of each object of a list
	parents        map[string]string
	checkedParents map[string]string // parents that the real controller checks; a missing one is status 442
	mandatory      string            // attribute without which a create fails
	noUpdate       bool              // PUT fails
	// PUT fails without the id in the body, and changes the object with that id
	idOnUpdate      bool
	bodyID          bool   // PUT changes the object with the id in the body, if there is one
	parentPath      string // path of the parent's collection, for nested collections
	parentAttribute string // attribute with the parent's ID, for nested collections
}

var resources = []resource{
	{
		objectType:     "network",
		path:           "networks",
		immutable:      []string{"tenant_id", "project_id"},
		parents:        map[string]string{"qos_policy_id": "policy"},
		checkedParents: map[string]string{"qos_policy_id": "policy"},
	},
	{
		objectType: "subnet",
		path:       "subnets",
		immutable:  []string{"network_id", "tenant_id", "project_id", "ip_version", "cidr"},
		parents:    map[string]string{"network_id": "network"},
	},
	{
		objectType:   "port",
		path:         "ports",
		bodyID:       true,
		keptOnUpdate: []string{"tenant_id", "project_id", "network_id", "mac_address", "fixed_ips"},
		parents: map[string]string{
			"network_id":          "network",
			"fixed_ips.subnet_id": "subnet",
			"security_groups.id":  "security_group",
			"qos_policy_id":       "policy",
		},
	},
	{
		objectType:   "router",
		path:         "routers",
		keptOnUpdate: []string{"tenant_id", "project_id"},
		parents:      map[string]string{"gw_port_id": "port", "external_gateway_info.network_id": "network"},
	},
	{
		objectType: "floatingip",
		idOnUpdate: true,
		path:       "floatingips",
		parents: map[string]string{
			"floating_network_id": "network",
			"port_id":             "port",
			"router_id":           "router",
		},
	},
	{objectType: "security_group", idOnUpdate: true, path: "security-groups"},
	{
		objectType: "security_group_rule",
		idOnUpdate: true,
		path:       "security-group-rules",
		mandatory:  "security_group_id",
		parents: map[string]string{
			"security_group_id": "security_group",
			"remote_group_id":   "security_group",
		},
		checkedParents: map[string]string{
			"security_group_id": "security_group",
			"remote_group_id":   "security_group",
		},
	},
	{
		objectType: "policy",
		idOnUpdate: true,
		path:       "qos/policies",
		plural:     "policies",
	},
	{
		objectType: "trunk",
		idOnUpdate: true,
		path:       "trunks",
		parents:    map[string]string{"port_id": "port", "sub_ports.port_id": "port"},
	},
	{objectType: "l2_gateway", idOnUpdate: true, path: "l2-gateways"},
	{
		objectType: "l2gateway_connection",
		path:       "l2gateway-connections",
		noUpdate:   true,
		parents:    map[string]string{"network_id": "network", "gateway_id": "l2_gateway"},
	},
	{
		objectType:   "flowclassifier",
		keptOnUpdate: []string{"tenant_id"},
		path:         "sfc/flowclassifiers",
		parents:      map[string]string{"logical_source_port": "port", "logical_destination_port": "port"},
	},
	{
		objectType:   "portpair",
		keptOnUpdate: []string{"tenant_id"},
		path:         "sfc/portpairs",
		parents:      map[string]string{"ingress": "port", "egress": "port"},
	},
	{
		objectType:   "portpairgroup",
		keptOnUpdate: []string{"tenant_id"},
		path:         "sfc/portpairgroups",
		parents:      map[string]string{"port_pairs": "portpair"},
	},
	{
		objectType:   "portchain",
		keptOnUpdate: []string{"tenant_id"},
		path:         "sfc/portchains",
		parents: map[string]string{
			"port_pair_groups": "portpairgroup",
			"flow_classifiers": "flowclassifier",
		},
	},
	{
		objectType:   "bgpvpn",
		keptOnUpdate: []string{"tenant_id"},
		path:         "bgpvpns",
		parents:      map[string]string{"networks": "network", "routers": "router"},
	},
	{
		objectType: "loadbalancer",
		idOnUpdate: true,
		path:       "lbaas/loadbalancers",
		parents:    map[string]string{"vip_subnet_id": "subnet", "vip_port_id": "port"},
	},
	{
		objectType: "listener",
		idOnUpdate: true,
		path:       "lbaas/listeners",
		parents:    map[string]string{"loadbalancers.id": "loadbalancer"},
	},
	{
		objectType: "pool",
		idOnUpdate: true,
		path:       "lbaas/pools",
		parents:    map[string]string{"listeners.id": "listener"},
	},
	{
		objectType:      "member",
		path:            "members",
		parentPath:      "lbaas/pools",
		parentAttribute: "pool_id",
		parents:         map[string]string{"pool_id": "pool", "subnet_id": "subnet"},
	},
	{
		objectType: "healthmonitor",
		idOnUpdate: true,
		path:       "lbaas/healthmonitors",
		parents:    map[string]string{"pools.id": "pool"},
	},
}

func (r resource) listKey() string {
	if r.plural != "" {
		return r.plural
	}
	return r.objectType + "s"
}

func resourceOf(typ string) (resource, bool) {
	i := slices.IndexFunc(resources, func(r resource) bool { return r.objectType == typ })
	if i < 0 {
		return resource{}, false
	}
	return resources[i], true
}

// parsePath returns the object type and the object ID in a path below BasePath. For a nested collection
// parsePath also returns the ID of the parent.
func parsePath(path string) (typ, id, within string) {
	path = strings.Trim(path, "/")
	for _, r := range resources {
		rest, ok := path, true
		if r.parentPath != "" {
			rest, ok = strings.CutPrefix(path, r.parentPath+"/")
			within, rest, _ = strings.Cut(rest, "/")
		}
		if ok {
			rest, ok = strings.CutPrefix(rest, r.path)
		}
		switch {
		case !ok:
		case rest == "":
			return r.objectType, "", within
		case rest[0] == '/' && !strings.Contains(rest[1:], "/"):
			return r.objectType, rest[1:], within
		}
		within = ""
	}
	return "", "", ""
}

// maxBody is the maximum number of bytes of a request body that the stub reads.
const maxBody = 16 << 20

func readBody(r *http.Request) ([]byte, error) { return io.ReadAll(io.LimitReader(r.Body, maxBody)) }

// objectID returns the ID of the object in a JSON envelope.
func objectID(body []byte) string {
	var envelope map[string]struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(body, &envelope)
	for _, o := range envelope {
		return o.ID
	}
	return ""
}

func errorReply(status int, format string, args ...any) reply {
	return reply{status: status, text: fmt.Sprintf(format, args...)}
}

// serverError is the answer to a request that the real controller cannot handle: status 500 without a body.
var serverError = reply{status: http.StatusInternalServerError}

func (c *Controller) handleNorthbound(seen Request, body []byte) reply {
	r, ok := resourceOf(seen.Type)
	if !ok {
		return serverError
	}
	_, pathID, _ := parsePath(seen.Path)
	one := pathID != ""
	switch {
	case seen.Method == http.MethodGet && one:
		return c.getObject(r, seen)
	case seen.Method == http.MethodGet:
		return c.listObjects(r, seen)
	case seen.Method == http.MethodPost && !one:
		return c.postObjects(r, seen.ParentID, body)
	case seen.Method == http.MethodPut && one && !r.noUpdate:
		return c.putObject(r, seen, body)
	case seen.Method == http.MethodDelete && one:
		return c.deleteObject(r, seen)
	}
	return serverError
}

func (c *Controller) getObject(r resource, seen Request) reply {
	o := c.view(r.objectType, seen.ID)
	if o == nil || r.parentPath != "" && !c.hasMember(seen) {
		return errorReply(http.StatusNotFound, "%s UUID does not exist.", r.objectType)
	}
	if r.objectType == "port" && o["mac_address"] == nil {
		return serverError
	}
	asked, _ := url.ParseQuery(seen.Query)
	return reply{
		status:   http.StatusOK,
		body:     map[string]any{r.objectType: selectFields(r.objectType, o, asked["fields"])},
		revision: revisionOf(o),
	}
}

// postObjects creates one object, or the objects of a list until one is refused.
func (c *Controller) postObjects(r resource, parent string, body []byte) reply {
	envelope, err := decode(body)
	if err != nil {
		return serverError
	}
	if o, ok := envelope[r.objectType].(map[string]any); ok && len(envelope) == 1 {
		return c.createObject(r, parent, o, envelope)
	}
	list, ok := envelope[r.listKey()].([]any)
	if !ok || len(envelope) != 1 {
		if r.parentPath != "" {
			return serverError
		}
		return errorReply(http.StatusBadRequest, "Invalid requests")
	}
	last := reply{status: http.StatusCreated, body: envelope}
	for _, item := range list {
		o, ok := item.(map[string]any)
		if !ok {
			return errorReply(http.StatusBadRequest, "Invalid requests")
		}
		if a := c.createObject(r, parent, o, envelope); a.status != http.StatusCreated {
			return a
		}
		last.applied = true
	}
	return last
}

func (c *Controller) createObject(r resource, parent string, o map[string]any, echo any) reply {
	id, _ := o["id"].(string)
	if id == "" {
		return serverError
	}
	if a := c.checkObject(r, o, true); a.status != 0 {
		return a
	}
	switch stored := c.object(r.objectType, id); {
	// the real controller keeps the member as it is
	case stored != nil && r.parentPath != "" && stored[r.parentAttribute] == parent:
		return reply{status: http.StatusCreated, body: echo}
	case stored != nil && r.parentPath == "":
		return reply{status: http.StatusConflict, body: echo}
	}
	view := viewOf(r.objectType, o, true)
	normalizeOwner(o)
	if r.parentPath != "" && o[r.parentAttribute] == nil {
		o[r.parentAttribute] = parent
	}
	c.checkWriteOrder(r, id, o)
	rec := c.recordOf(r.objectType, id)
	rec.Creates++
	return c.storeObject(rec, o, view, reply{status: http.StatusCreated, body: echo})
}

func (c *Controller) putObject(r resource, seen Request, body []byte) reply {
	id := seen.ID
	envelope, err := decode(body)
	if err != nil {
		return serverError
	}
	o, ok := envelope[r.objectType].(map[string]any)
	if !ok || len(envelope) != 1 {
		return errorReply(http.StatusBadRequest, "Only singleton edit supported")
	}
	stored := c.object(r.objectType, id)
	switch {
	case stored == nil && r.parentPath != "":
		return c.putUnknownMember(r, seen, o)
	case stored == nil:
		return errorReply(http.StatusNotFound, "%s UUID does not exist.", r.objectType)
	case r.idOnUpdate && o["id"] == nil:
		return serverError
	}
	project := o["project_id"]
	for _, name := range slices.Concat(r.immutable, r.keptOnUpdate) {
		if stored[name] != nil && (o[name] == nil || slices.Contains(r.immutable, name)) {
			o[name] = stored[name]
		}
	}
	if a := c.checkObject(r, o, false); a.status != 0 {
		return a
	}
	if other, ok := o["id"].(string); ok && other != "" && (r.idOnUpdate || r.bodyID) {
		id = other
	}
	o["id"] = id
	if o[r.parentAttribute] == nil && r.parentPath != "" {
		o[r.parentAttribute] = seen.ParentID
	}
	c.checkWriteOrder(r, id, o)
	if revisionOf(o) < revisionOf(stored) {
		return reply{status: http.StatusOK, revision: revisionOf(o)}
	}
	rec := c.recordOf(r.objectType, id)
	rec.Updates++
	view := c.viewOfUpdate(r, o, project)
	return c.storeObject(rec, o, view, reply{status: http.StatusOK, body: map[string]any{r.objectType: view}})
}

// viewOfUpdate returns the view of an updated object. For a type whose updates keep the tenant, the view
// contains the tenant without dashes.
func (c *Controller) viewOfUpdate(r resource, o map[string]any, project any) map[string]any {
	sent := maps.Clone(o)
	if tenant, ok := sent["tenant_id"].(string); ok &&
		slices.Contains(slices.Concat(r.immutable, r.keptOnUpdate), "tenant_id") {
		sent["tenant_id"] = withoutDashes(tenant)
	}
	sent["project_id"] = project
	return viewOf(r.objectType, sent, false)
}

func (c *Controller) deleteObject(r resource, seen Request) reply {
	switch {
	case r.parentPath != "" && c.object("pool", seen.ParentID) == nil:
		return serverError
	case r.parentPath != "" && c.object(r.objectType, seen.ID) == nil:
		return errorReply(http.StatusBadRequest, "%s UUID does not exist.", r.objectType)
	case c.object(r.objectType, seen.ID) == nil:
		return errorReply(http.StatusNotFound, "%s UUID does not exist.", r.objectType)
	}
	c.checkDeleteOrder(r, seen.ID)
	rec := c.recordOf(r.objectType, seen.ID)
	rec.Deletes++
	return c.storeObject(rec, nil, nil, reply{status: http.StatusNoContent})
}

// storeObject stores an object in the file before the request is answered.
func (c *Controller) storeObject(rec *Record, o, view map[string]any, a reply) reply {
	rec.Object = o
	c.views[key(rec.Type, rec.ID)] = view
	rec.HighestRevision = max(rec.HighestRevision, revisionOf(o))
	err := c.appendToFile(rec)
	if rec.Type == "pool" && err == nil {
		err = c.dropMembers(rec.ID)
	}
	if err != nil {
		return errorReply(http.StatusInternalServerError, "%s", err)
	}
	c.updatePortStatus(rec)
	a.applied, a.revision = true, revisionOf(o)
	return a
}

// normalizeOwner sets project_id and tenant_id to the same UUID, written with dashes, as the real controller
// does.
func normalizeOwner(o map[string]any) {
	for _, name := range []string{"tenant_id", "project_id"} {
		if o[name] == "" {
			delete(o, name)
		}
		if id, ok := o[name].(string); ok && len(id) == 32 && !strings.Contains(id, "-") {
			o[name] = id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]
		}
	}
	for from, to := range map[string]string{"tenant_id": "project_id", "project_id": "tenant_id"} {
		if v, ok := o[to]; (!ok || v == nil) && o[from] != nil {
			o[to] = o[from]
		}
	}
}

func (c *Controller) object(typ, id string) map[string]any {
	if rec, ok := c.records[key(typ, id)]; ok {
		return rec.Object
	}
	return nil
}

func (c *Controller) recordOf(typ, id string) *Record {
	rec, ok := c.records[key(typ, id)]
	if !ok {
		rec = &Record{Type: typ, ID: id}
		c.records[key(typ, id)] = rec
	}
	return rec
}

func revisionOf(o map[string]any) int64 {
	n, _ := o["revision_number"].(json.Number)
	v, _ := n.Int64()
	return v
}

func decode(raw []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o map[string]any
	err := d.Decode(&o)
	if err == nil && o == nil {
		err = errors.New("null is not an object")
	}
	return o, err
}
