// Package resource has the commands for berth's resources: networks, subnets, ports, agents, leases, hosts, resource
// providers, allocations, aggregates, the journal and the runs against the controller. It calls the API like any other
// client; only `starter signal` calls Temporal.
package resource
