package main

import (
	"fmt"
	"net/http"

	"berth/bench/dataset"
)

// request is a request to one of berth's APIs.
type request struct {
	method, path, body string
	member             bool // with the token of a member of dataset.BigProject instead of an administrator's
}

// route is a kind of request. Its requests change or delete only objects of its own.
type route struct {
	name  string
	title string
	group string
	bound float64 // maximum of the ratio of the medians; 0: none
	// returns the i-th request on a cloud of the given size; nil: the baseline, see measureRoutes
	request func(size, i int) request
}

// The objects of a size are divided into shares, so that a route that changes objects has objects of its own.
const (
	readShare = iota
	changeShare
	deleteShare
	allocationShare
	shares
)

// object returns the number, from 1 on, of the object of the i-th request in a share. As far as a share has
// enough objects, no two requests have the same one, and the objects are spread over the whole table.
func object(size, share, i int) int {
	const step = 7919 // a prime, so that the step divides no number of objects
	return 1 + share + shares*(i*step%(size/shares))
}

// Groups of curves, each of which is one picture.
const (
	networking  = "networking"
	placement   = "placement"
	reservation = "reservation"
	operation   = "operation" // what operators read: journal, console, metrics
	process     = "process"
	idle        = "idle"
	database    = "database"
)

// routes lists all routes in the order in which the client requests them.
var routes = []route{
	{
		name:  "baseline",
		title: "baseline: a row by its primary key, with net/http and the database driver alone",
		group: process,
		bound: flatRatio,
	},
	{
		name:    "post-port",
		title:   "`POST /ports`",
		group:   networking,
		bound:   flatRatio,
		request: func(size, i int) request { return postPort(size, i, "bench") },
	},
	{
		name:    "post-port-big",
		title:   "`POST /ports` in the project with a tenth of the ports",
		group:   networking,
		request: func(size, i int) request { return postPort(size, i, dataset.BigProject) },
	},
	{
		name:    "get-port",
		title:   "`GET /ports/{id}`",
		group:   networking,
		bound:   flatRatio,
		request: func(size, i int) request { return get(neutron + "/ports/" + readID(dataset.Port, size, i)) },
	},
	{
		name:  "list-ports",
		title: "`GET /ports?limit=50` of an administrator",
		group: networking,
		bound: flatRatio,
		request: func(size, i int) request {
			return get(neutron + "/ports?limit=50&marker=" + readID(dataset.Port, size, i))
		},
	},
	{
		name:    "list-ports-project",
		title:   "`GET /ports?limit=50` of the project with a tenth of the ports",
		group:   networking,
		bound:   flatRatio,
		request: func(int, int) request { return request{method: "GET", path: neutron + "/ports?limit=50", member: true} },
	},
	{
		name:  "list-ports-device",
		title: "`GET /ports?device_id=` of a server",
		group: networking,
		bound: flatRatio,
		request: func(size, i int) request {
			return get(neutron + "/ports?device_id=" + readID(dataset.Consumer, size, i))
		},
	},
	{
		name:  "put-port",
		title: "`PUT /ports/{id}` of a name",
		group: networking,
		bound: flatRatio,
		request: func(size, i int) request {
			return request{
				method: "PUT",
				path:   neutron + "/ports/" + dataset.ID(dataset.Port, object(size, changeShare, i)),
				body:   `{"port":{"name":"renamed"}}`,
			}
		},
	},
	{
		name:  "delete-port",
		title: "`DELETE /ports/{id}`",
		group: networking,
		bound: flatRatio,
		request: func(size, i int) request {
			return request{method: "DELETE", path: neutron + "/ports/" + dataset.ID(dataset.Port, object(size, deleteShare, i))}
		},
	},
	{
		name:  "post-network",
		title: "`POST /networks`",
		group: networking,
		bound: flatRatio,
		request: func(int, int) request {
			return request{method: "POST", path: neutron + "/networks", body: `{"network":{"name":"new","project_id":"bench"}}`}
		},
	},
	{
		name:    "list-networks",
		title:   "`GET /networks?limit=50`",
		group:   networking,
		bound:   flatRatio,
		request: func(int, int) request { return get(neutron + "/networks?limit=50") },
	},
	{
		name:  "agent-report",
		title: "`POST /agent/v1/reports` about one port",
		group: networking,
		bound: flatRatio,
		request: func(size, i int) request {
			p := dataset.PortOf(object(size, changeShare, i))
			return post("/agent/v1/reports", `{"reports":[{"port":%q,"entity":"L2","host":%q}]}`, p.ID, p.Host)
		},
	},
	{
		name:  "put-allocation",
		title: "`PUT /allocations/{consumer}` of a new consumer",
		group: placement,
		bound: flatRatio,
		request: func(size, i int) request {
			return request{
				method: "PUT",
				path:   "/placement/allocations/" + dataset.ID("new consumer", i),
				body: fmt.Sprintf(`{"allocations":{%q:{"resources":{"VCPU":2,"MEMORY_MB":4096,"DISK_GB":20}}},`+
					`"project_id":"bench","user_id":"bench","consumer_type":"INSTANCE","consumer_generation":null}`,
					dataset.ID(dataset.Provider, object(size, allocationShare, i))),
			}
		},
	},
	{
		name:  "get-allocation",
		title: "`GET /allocations/{consumer}`",
		group: placement,
		bound: flatRatio,
		request: func(size, i int) request {
			return get("/placement/allocations/" + readID(dataset.Consumer, size, i))
		},
	},
	{
		name:  "delete-allocation",
		title: "`DELETE /allocations/{consumer}`",
		group: placement,
		bound: flatRatio,
		request: func(size, i int) request {
			return request{
				method: "DELETE",
				path:   "/placement/allocations/" + dataset.ID(dataset.Consumer, object(size, deleteShare, i)),
			}
		},
	},
	{
		name:    "candidates",
		title:   "`GET /allocation_candidates?limit=10`",
		group:   placement,
		bound:   flatRatio,
		request: func(int, int) request { return get(candidates) },
	},
	{
		name:  "candidates-aggregate",
		title: "`GET /allocation_candidates?limit=10&member_of=` of an aggregate of 50 providers",
		group: placement,
		bound: flatRatio,
		request: func(size, i int) request {
			return get(candidates + "&member_of=" + dataset.ID(dataset.Aggregate, object(size, readShare, i)/50))
		},
	},
	{
		name:  "list-providers",
		title: "`GET /resource_providers?member_of=` of an aggregate of 50 providers",
		group: placement,
		bound: flatRatio,
		request: func(size, i int) request {
			return get("/placement/resource_providers?member_of=" + dataset.ID(dataset.Aggregate, object(size, readShare, i)/50))
		},
	},
	{
		name:  "find-provider",
		title: "`GET /resource_providers?name=`",
		group: placement,
		bound: flatRatio,
		request: func(size, i int) request {
			return get(fmt.Sprint("/placement/resource_providers?name=host-", object(size, readShare, i)))
		},
	},
	{
		name:  "post-provider",
		title: "`POST /resource_providers`",
		group: placement,
		bound: flatRatio,
		request: func(_, i int) request {
			return post("/placement/resource_providers", `{"name":"new-%d","uuid":%q}`, i, dataset.ID("new provider", i))
		},
	},
	{
		name:  "usages",
		title: "`GET /usages?project_id=` of a project with 90 consumers",
		group: placement,
		bound: flatRatio,
		request: func(size, i int) request {
			return get(fmt.Sprint("/placement/usages?project_id=project-", object(size, readShare, i)/100%(size/100)))
		},
	},
	{
		name:    "usages-big",
		title:   "`GET /usages?project_id=` of the project with a tenth of the consumers",
		group:   placement,
		request: func(int, int) request { return get("/placement/usages?project_id=" + dataset.BigProject) },
	},
	{
		name:    "post-lease",
		title:   "`POST /leases` of one of 500 hosts",
		group:   reservation,
		bound:   hostRatio,
		request: postLease,
	},
	{
		name:  "get-lease",
		title: "`GET /leases/{id}`",
		group: reservation,
		bound: flatRatio,
		request: func(size, i int) request {
			return get("/reservation/v1/leases/" + readID(dataset.PastLease, size, i))
		},
	},
	{
		name:  "put-lease",
		title: "`PUT /leases/{id}` of a name",
		group: reservation,
		bound: flatRatio,
		request: func(size, i int) request {
			return request{
				method: "PUT",
				path:   "/reservation/v1/leases/" + dataset.ID(dataset.PendingLease, i%dataset.PendingLeases(size)),
				body:   fmt.Sprintf(`{"name":"renamed-%d"}`, i),
			}
		},
	},
	{
		name:  "list-leases",
		title: "`GET /leases?limit=50`",
		group: reservation,
		bound: flatRatio,
		request: func(size, i int) request {
			return get("/reservation/v1/leases?limit=50&marker=" + readID(dataset.PastLease, size, i))
		},
	},
	{
		name:    "get-host",
		title:   "`GET /os-hosts/{id}`",
		group:   reservation,
		bound:   flatRatio,
		request: func(_, i int) request { return get(fmt.Sprint("/reservation/v1/os-hosts/", 1+i%100)) },
	},
	{
		name:  "get-entry",
		title: "`GET /journal/v1/entries/{seq}`",
		group: operation,
		bound: flatRatio,
		request: func(size, i int) request {
			return get(fmt.Sprint("/journal/v1/entries/", 10+object(size, readShare, i)%(size/2)))
		},
	},
	{
		name:  "list-entries",
		title: "`GET /journal/v1/entries?limit=50`",
		group: operation,
		bound: flatRatio,
		request: func(size, i int) request {
			return get(fmt.Sprint("/journal/v1/entries?limit=50&after=", object(size, readShare, i)))
		},
	},
	{
		name:    "list-entries-state",
		title:   "`GET /journal/v1/entries?limit=50&state=failed`",
		group:   operation,
		bound:   flatRatio,
		request: func(int, int) request { return get("/journal/v1/entries?limit=50&state=failed") },
	},
	{
		name:    "console-waiting",
		title:   "console: what waits",
		group:   operation,
		bound:   flatRatio,
		request: func(int, int) request { return get("/console/") },
	},
	{
		name:    "console-project",
		title:   "console: ports of the project with a tenth of the ports",
		group:   operation,
		bound:   flatRatio,
		request: func(int, int) request { return request{method: "GET", path: "/console/ports", member: true} },
	},
	{
		name:    "console-port",
		title:   "console: a port with its timeline",
		group:   operation,
		bound:   hostRatio,
		request: func(size, i int) request { return get("/console/ports/" + readID(dataset.Port, size, i)) },
	},
	{
		name:    "console-consumer",
		title:   "console: a consumer",
		group:   operation,
		bound:   flatRatio,
		request: func(size, i int) request { return get("/console/consumers/" + readID(dataset.Consumer, size, i)) },
	},
	{
		name:    "console-calendar",
		title:   "console: calendar of leases",
		group:   operation,
		request: func(int, int) request { return get("/console/calendar") },
	},
	{
		name:    "overdue",
		title:   "`GET /operator/v1/overdue`",
		group:   operation,
		bound:   flatRatio,
		request: func(int, int) request { return get("/operator/v1/overdue") },
	},
	{
		name:    "metrics",
		title:   "`GET /metrics`",
		group:   operation,
		bound:   flatRatio,
		request: func(int, int) request { return get("/metrics") },
	},
}

const (
	neutron    = "/networking/v2.0"
	candidates = "/placement/allocation_candidates?resources=VCPU:2,MEMORY_MB:4096,DISK_GB:20&limit=10"
)

func get(path string) request { return request{method: http.MethodGet, path: path} }

func post(path, body string, values ...any) request {
	return request{method: http.MethodPost, path: path, body: fmt.Sprintf(body, values...)}
}

// readID returns the ID of the object of the i-th request that only reads.
func readID(kind string, size, i int) string { return dataset.ID(kind, object(size, readShare, i)) }

// postPort creates a port of a new server.
func postPort(size, i int, project string) request {
	p := dataset.PortOf(object(size, readShare, i))
	return post(neutron+"/ports",
		`{"port":{"network_id":%q,"project_id":%q,"binding:host_id":%q,"device_owner":"compute:nova","device_id":%q}}`,
		p.Network, project, p.Host, dataset.ID("new server", i))
}
