package reportstore

import (
	"berth/internal/lease"
	"berth/internal/network"
)

// Party is the kind of party that objects wait for.
type Party string

// The kinds of parties.
const (
	// the agents of an entity, on one host or on any host that serves a network
	Agent         Party = "agent"
	Host          Party = "host"          // a host on which no agent can bind the port
	Lease         Party = "lease"         // a lease that still has a host although its end has passed
	Controller    Party = "controller"    // OpenDaylight
	EarlierEntry  Party = "entry"         // an earlier journal entry
	Administrator Party = "administrator" // an operator who must retry or skip failed journal entries
	Service       Party = "service"       // a service that berth calls for a reservation: Nova, Neutron, …
	Nova          Party = "nova"          // Nova, which has not got the event of a port yet
	RabbitMQ      Party = "rabbitmq"      // RabbitMQ, which has not got a notification for the agents yet
	Webhook       Party = "webhook"       // the webhook
	Temporal      Party = "temporal"      // Temporal, which has not got a note of the outbox yet
	// a worker that takes the overdue step of a lease, or the lease that holds the host
	Worker Party = "worker"
)

// Parties lists the kinds of parties in the order in which operators see them.
var Parties = []Party{
	Agent,
	Lease,
	Host,
	Controller,
	EarlierEntry,
	Administrator,
	Service,
	Nova,
	RabbitMQ,
	Webhook,
	Temporal,
	Worker,
}

// partyTexts has the title of each kind of party, a sentence about what waits for it, and the words for one
// party if they do not depend on its name and host.
var partyTexts = map[Party]struct{ title, hint, label string }{
	Agent: {
		title: "Agents",
		hint:  "The ports and trunks become ACTIVE when these agents report that they have done their part.",
	},
	Host: {
		title: "Hosts",
		hint:  "No live agent on these hosts can bind the port. A port binds again when a suitable agent reports.",
	},
	Lease: {
		title: "Leases past their end",
		hint:  "These leases still have hosts that other leases need next. The next lease starts late unless they leave the host before its start.",
	},
	Controller: {
		title: "Controller",
		hint:  "OpenDaylight has not got these changes yet.",
		label: "OpenDaylight",
	},
	EarlierEntry: {
		title: "Earlier journal entries",
		hint:  "These changes follow after the entries for which they wait.",
		label: "an earlier entry",
	},
	Administrator: {
		title: "Administrators",
		hint:  "The controller has refused these entries. Retry or skip them with starter.",
		label: "an administrator",
	},
	Service: {
		title: "Nova, Neutron and Keystone",
		hint:  "Calls for reservations have failed. berth repeats them.",
	},
	Nova: {
		title: "Nova",
		hint:  "Nova has not got these events about ports yet.",
		label: "Nova",
	},
	RabbitMQ: {
		title: "RabbitMQ",
		hint:  "The agents have not got these notifications yet.",
		label: "RabbitMQ",
	},
	Webhook: {
		title: "Webhook",
		hint:  "The webhook has not got these notifications yet.",
		label: "the webhook",
	},
	Temporal: {
		title: "Temporal",
		hint:  "The relay has not delivered these notes yet.",
		label: "Temporal",
	},
	Worker: {
		title: "Workers or other leases",
		hint:  "A step of these leases is overdue: a worker must take it, or another lease must leave its host first.",
		label: "a worker, or another lease",
	},
}

// Title names all parties of the kind.
func (p Party) Title() string { return partyTexts[p].title }

// Hint returns a sentence about the objects that wait for parties of the kind.
func (p Party) Hint() string { return partyTexts[p].hint }

// Label names the party with the name and the host of a WaitingGroup.
func (p Party) Label(name, host string) string {
	switch {
	case p == Agent && host != "":
		return name + " on " + host
	case p == Agent && name == network.DHCP:
		return "DHCP agents of the network"
	case p == Agent:
		return name
	case p == Host:
		return "agents on " + host
	case p == Lease:
		return name + " to leave " + host
	case p == Service:
		return lease.PartyName(name)
	}
	return partyTexts[p].label
}
