// Package leases tests whole leases with stubs of Nova and Neutron: their steps, the faults of both services,
// and kills of the process that runs a step.
package leases
