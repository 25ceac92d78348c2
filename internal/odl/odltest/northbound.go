package odltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// resource is one collection of the northbound.
type resource struct {
	typ      string            // envelope of one object
	path     string            // collection
	plural   string            // envelope of a list
	fixedAt  []string          // what no update changes
	kept     []string          // what an update that lacks it takes from the stored object
	parents  map[string]string // attribute → type of what it refers to; in lists of objects as list.attribute
	required map[string]string // those that the real controller checks, with a 442
	must     string            // attribute without which it fails
	fixed    bool              // there is no update
	within   string            // the collection whose objects have one of these each
	outer    string            // attribute that names that object
}

var resources = []resource{
	{typ: "network", path: "networks", fixedAt: []string{"tenant_id", "project_id"},
		parents: map[string]string{"qos_policy_id": "policy"}, required: map[string]string{"qos_policy_id": "policy"}},
	{typ: "subnet", path: "subnets", fixedAt: []string{"network_id", "tenant_id", "project_id", "ip_version", "cidr"},
		parents: map[string]string{"network_id": "network"}},
	{typ: "port", path: "ports", kept: []string{"tenant_id", "project_id", "network_id", "mac_address", "fixed_ips"},
		parents: map[string]string{"network_id": "network", "fixed_ips.subnet_id": "subnet", "security_groups.id": "security_group", "qos_policy_id": "policy"}},
	{typ: "router", path: "routers", parents: map[string]string{"gw_port_id": "port", "external_gateway_info.network_id": "network"}},
	{typ: "floatingip", path: "floatingips",
		parents: map[string]string{"floating_network_id": "network", "port_id": "port", "router_id": "router"}},
	{typ: "security_group", path: "security-groups"},
	{typ: "security_group_rule", path: "security-group-rules", must: "security_group_id",
		parents:  map[string]string{"security_group_id": "security_group", "remote_group_id": "security_group"},
		required: map[string]string{"security_group_id": "security_group", "remote_group_id": "security_group"}},
	{typ: "policy", path: "qos/policies", plural: "policies"},
	{typ: "trunk", path: "trunks", parents: map[string]string{"port_id": "port", "sub_ports.port_id": "port"}},
	{typ: "l2_gateway", path: "l2-gateways"},
	{typ: "l2gateway_connection", path: "l2gateway-connections", fixed: true,
		parents: map[string]string{"network_id": "network", "gateway_id": "l2_gateway"}},
	{typ: "flowclassifier", path: "sfc/flowclassifiers",
		parents: map[string]string{"logical_source_port": "port", "logical_destination_port": "port"}},
	{typ: "portpair", path: "sfc/portpairs", parents: map[string]string{"ingress": "port", "egress": "port"}},
	{typ: "portpairgroup", path: "sfc/portpairgroups", parents: map[string]string{"port_pairs": "portpair"}},
	{typ: "portchain", path: "sfc/portchains", parents: map[string]string{"port_pair_groups": "portpairgroup", "flow_classifiers": "flowclassifier"}},
	{typ: "bgpvpn", path: "bgpvpns", parents: map[string]string{"networks": "network", "routers": "router"}},
	{typ: "loadbalancer", path: "lbaas/loadbalancers", parents: map[string]string{"vip_subnet_id": "subnet", "vip_port_id": "port"}},
	{typ: "listener", path: "lbaas/listeners", parents: map[string]string{"loadbalancers.id": "loadbalancer"}},
	{typ: "pool", path: "lbaas/pools", parents: map[string]string{"listeners.id": "listener"}},
	{typ: "member", path: "members", within: "lbaas/pools", outer: "pool_id", parents: map[string]string{"pool_id": "pool", "subnet_id": "subnet"}},
	{typ: "healthmonitor", path: "lbaas/healthmonitors", parents: map[string]string{"pools.id": "pool"}},
}

func (r resource) list() string {
	if r.plural != "" {
		return r.plural
	}
	return r.typ + "s"
}

func resourceOf(typ string) (resource, bool) {
	i := slices.IndexFunc(resources, func(r resource) bool { return r.typ == typ })
	if i < 0 {
		return resource{}, false
	}
	return resources[i], true
}

// route finds the type and the ID in a path below Base, and the ID of the object whose collection it is, if that is
// one's.
func route(path string) (typ, id, within string) {
	path = strings.Trim(path, "/")
	for _, r := range resources {
		rest, ok := path, true
		if r.within != "" {
			rest, ok = strings.CutPrefix(path, r.within+"/")
			within, rest, _ = strings.Cut(rest, "/")
		}
		if ok {
			rest, ok = strings.CutPrefix(rest, r.path)
		}
		switch {
		case !ok:
		case rest == "":
			return r.typ, "", within
		case rest[0] == '/' && !strings.Contains(rest[1:], "/"):
			return r.typ, rest[1:], within
		}
		within = ""
	}
	return "", "", ""
}

// maxBody bounds a request.
const maxBody = 16 << 20

func read(r *http.Request) ([]byte, error) { return io.ReadAll(io.LimitReader(r.Body, maxBody)) }

// idOf is the ID inside a single object's envelope.
func idOf(body []byte) string {
	var envelope map[string]struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(body, &envelope)
	for _, o := range envelope {
		return o.ID
	}
	return ""
}

func refuse(status int, format string, args ...any) reply {
	return reply{status: status, text: fmt.Sprintf(format, args...)}
}

func (c *Controller) handle(seen Request, body []byte) reply {
	r, ok := resourceOf(seen.Type)
	if !ok {
		return refuse(http.StatusNotFound, "no such collection")
	}
	one := seen.ID != "" && seen.Method != http.MethodPost
	switch {
	case seen.Method == http.MethodGet && one:
		return c.show(r, seen)
	case seen.Method == http.MethodGet:
		return c.all(r, seen)
	case seen.Method == http.MethodPost:
		return c.post(r, body)
	case seen.Method == http.MethodPut && one && !r.fixed:
		return c.put(r, seen.ID, body)
	case seen.Method == http.MethodDelete && one:
		return c.remove(r, seen.ID)
	}
	return refuse(http.StatusMethodNotAllowed, "")
}

func (c *Controller) show(r resource, seen Request) reply {
	o := c.object(r.typ, seen.ID)
	if o == nil {
		return refuse(http.StatusNotFound, "%s UUID does not exist.", r.typ)
	}
	asked, _ := url.ParseQuery(seen.Query)
	return reply{status: http.StatusOK, body: map[string]any{r.typ: only(o, asked["fields"])}, revision: revision(o)}
}

// post creates one object or, in the list's envelope, several up to the first that is refused.
func (c *Controller) post(r resource, body []byte) reply {
	envelope, err := decode(body)
	if err != nil {
		return refuse(http.StatusBadRequest, "Invalid requests")
	}
	if o, ok := envelope[r.typ].(map[string]any); ok && len(envelope) == 1 {
		return c.create(r, o, envelope)
	}
	list, ok := envelope[r.list()].([]any)
	if !ok || len(envelope) != 1 {
		return refuse(http.StatusBadRequest, "Invalid requests")
	}
	last := reply{status: http.StatusCreated, body: envelope}
	for _, item := range list {
		o, ok := item.(map[string]any)
		if !ok {
			return refuse(http.StatusBadRequest, "Invalid requests")
		}
		if a := c.create(r, o, envelope); a.status != http.StatusCreated {
			return a
		}
		last.applied = true
	}
	return last
}

func (c *Controller) create(r resource, o map[string]any, echo any) reply {
	id, _ := o["id"].(string)
	if id == "" {
		return refuse(http.StatusInternalServerError, "")
	}
	if a := c.check(r, o); a.status != 0 {
		return a
	}
	if c.object(r.typ, id) != nil {
		return reply{status: http.StatusConflict, body: echo}
	}
	owned(o)
	c.judge(r, id, o)
	rec := c.record(r.typ, id)
	rec.Creates++
	return c.write(rec, o, reply{status: http.StatusCreated, body: echo})
}

func (c *Controller) put(r resource, id string, body []byte) reply {
	envelope, err := decode(body)
	if err != nil {
		return refuse(http.StatusBadRequest, "Invalid requests")
	}
	o, ok := envelope[r.typ].(map[string]any)
	if !ok || len(envelope) != 1 {
		return refuse(http.StatusBadRequest, "Only singleton edit supported")
	}
	stored := c.object(r.typ, id)
	if stored == nil {
		return refuse(http.StatusNotFound, "%s UUID does not exist.", r.typ)
	}
	if a := c.check(r, o); a.status != 0 {
		return a
	}
	for _, name := range slices.Concat(r.fixedAt, r.kept) {
		if stored[name] != nil && (o[name] == nil || slices.Contains(r.fixedAt, name)) {
			o[name] = stored[name]
		}
	}
	o["id"] = id
	c.judge(r, id, o)
	if revision(o) < revision(stored) {
		return reply{status: http.StatusOK, revision: revision(o)}
	}
	rec := c.record(r.typ, id)
	rec.Updates++
	return c.write(rec, o, reply{status: http.StatusOK, body: map[string]any{r.typ: o}})
}

func (c *Controller) remove(r resource, id string) reply {
	if c.object(r.typ, id) == nil {
		return refuse(http.StatusNotFound, "%s UUID does not exist.", r.typ)
	}
	c.judgeRemoval(r, id)
	rec := c.record(r.typ, id)
	rec.Deletes++
	return c.write(rec, nil, reply{status: http.StatusNoContent})
}

// write stores an object before the request is answered, so that an answer is a promise.
func (c *Controller) write(rec *Record, o map[string]any, a reply) reply {
	rec.Object = o
	rec.HighestRevision = max(rec.HighestRevision, revision(o))
	if err := c.keep(rec); err != nil {
		return refuse(http.StatusInternalServerError, "%s", err)
	}
	c.wired(rec)
	a.applied, a.revision = true, revision(o)
	return a
}

// owned writes whose a new object is as the real controller does: under both names, UUIDs with dashes.
func owned(o map[string]any) {
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

// check refuses what the real controller refuses.
func (c *Controller) check(r resource, o map[string]any) reply {
	if r.must != "" && o[r.must] == nil {
		return reply{status: http.StatusInternalServerError}
	}
	for attribute, typ := range r.required {
		if id, ok := o[attribute].(string); ok && id != "" && c.object(typ, id) == nil {
			return refuse(442, "%s %s is missing", typ, id)
		}
	}
	if profile, ok := o["binding:profile"]; ok && profile != nil {
		if _, text := profile.(string); !text {
			return refuse(http.StatusBadRequest, "binding:profile is not a string")
		}
	}
	if protocol, ok := o["protocol"].(string); ok && protocol != strings.ToLower(protocol) {
		return refuse(http.StatusBadRequest, "protocol %s is unknown", protocol)
	}
	return reply{}
}

func (c *Controller) object(typ, id string) map[string]any {
	if rec, ok := c.records[key(typ, id)]; ok {
		return rec.Object
	}
	return nil
}

func (c *Controller) record(typ, id string) *Record {
	rec, ok := c.records[key(typ, id)]
	if !ok {
		rec = &Record{Type: typ, ID: id}
		c.records[key(typ, id)] = rec
	}
	return rec
}

func revision(o map[string]any) int64 {
	n, _ := o["revision_number"].(json.Number)
	v, _ := n.Int64()
	return v
}

func decode(raw []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o map[string]any
	err := d.Decode(&o)
	return o, err
}
