// Package resource has the commands for berth's resources: networks, subnets, ports, agents, leases, hosts,
// resource providers, allocations, aggregates, the journal and the runs against the controller. The commands
// of package resource call the API like any other client; of these commands, only `starter signal` calls
// Temporal.
package resource
