package resource

import (
	"slices"

	"berth/starter/cli"
)

// Commands returns the commands of package resource: the commands for networks, leases, the journal and all
// other resources.
func Commands() []cli.Command {
	return slices.Concat(
		networkingCommands(),
		credentialCommands(),
		reservationCommands(),
		placementCommands(),
		controllerCommands(),
		policyCommands(),
		noteCommands(),
		auditCommands(),
	)
}

func networkingCommands() []cli.Command {
	return []cli.Command{
		{Words: "network list", Help: "List networks", Bind: listCommand(Networks)},
		{Words: "network show NETWORK", Help: "Show a network", Bind: showCommand(Networks)},
		{Words: "network create NAME", Help: "Create a network", Bind: createCommand(Networks, nil)},
		{Words: "network set NETWORK", Help: "Change a network", Bind: setCommand(Networks)},
		{Words: "network delete NETWORK...", Help: "Delete networks", Bind: deleteCommand(Networks)},

		{Words: "subnet list", Help: "List subnets", Bind: listCommand(Subnets)},
		{Words: "subnet show SUBNET", Help: "Show a subnet", Bind: showCommand(Subnets)},
		{Words: "subnet create NAME", Help: "Create a subnet", Bind: createCommand(Subnets, prepareSubnet)},
		{Words: "subnet set SUBNET", Help: "Change a subnet", Bind: setCommand(Subnets)},
		{Words: "subnet delete SUBNET...", Help: "Delete subnets", Bind: deleteCommand(Subnets)},

		{Words: "port list", Help: "List ports", Bind: listCommand(Ports)},
		{Words: "port show PORT", Help: "Show a port and explain its status", Bind: showCommand(Ports)},
		{
			Words: "port create NAME",
			Help:  "Create a port",
			Bind:  createCommand(Ports, requireAttribute("network_id", "--network")),
		},
		{Words: "port set PORT", Help: "Change a port", Bind: setCommand(Ports)},
		{Words: "port delete PORT...", Help: "Delete ports", Bind: deleteCommand(Ports)},
		{Words: "port wait PORT", Help: "Wait until a port has a status", Bind: waitCommand(Ports, "active")},
		{
			Words:   "signal OBJECT",
			Help:    "Send an agent's provisioning-complete to a port's workflow",
			Details: signalHelp,
			Bind:    signalCommand,
		},

		{Words: "trunk list", Help: "List trunks", Bind: listCommand(Trunks)},
		{
			Words: "trunk show TRUNK",
			Help:  "Show a trunk and explain its status",
			Bind:  showCommand(Trunks),
		},

		{Words: "agent list", Help: "List agents", Bind: listCommand(Agents)},
		{Words: "agent show AGENT", Help: "Show an agent", Bind: showCommand(Agents)},
		{Words: "agent set AGENT", Help: "Change an agent", Bind: setCommand(Agents)},
		{Words: "agent delete AGENT...", Help: "Delete agents", Bind: deleteCommand(Agents)},
		{
			Words:   "agent report HOST",
			Help:    "Send an agent's heartbeat and its provisioning reports",
			Details: reportHelp,
			Bind:    reportCommand,
		},
	}
}

// credentialCommands returns the commands for the tokens, keys and virtual hosts of agents.
func credentialCommands() []cli.Command {
	return []cli.Command{
		{
			Words:   "agent token create HOST",
			Help:    "Create a token with which the agents of a host report over HTTP",
			Details: tokenHelp,
			Bind:    createAgentToken,
		},
		{Words: "agent token list", Help: "List the tokens of agents", Bind: listCommand(AgentTokens)},
		{
			Words: "agent token revoke TOKEN-ID...",
			Help:  "Revoke tokens of agents",
			Bind:  deleteCommand(AgentTokens),
		},
		{
			Words:   "agent key create HOST",
			Help:    "Register a public key that verifies the signed reports of a host",
			Details: keyHelp,
			Bind:    addAgentKey,
		},
		{Words: "agent key list", Help: "List the public keys of agents", Bind: listCommand(AgentKeys)},
		{
			Words: "agent key revoke KEY-ID...",
			Help:  "Revoke public keys of agents",
			Bind:  deleteCommand(AgentKeys),
		},
		{
			Words:   "agent vhost create HOST",
			Help:    "Register the RabbitMQ virtual host that only the agents of a host use",
			Details: virtualHostHelp,
			Bind:    addAgentVirtualHost,
		},
		{
			Words: "agent vhost list",
			Help:  "List the RabbitMQ virtual hosts of agents",
			Bind:  listCommand(AgentVirtualHosts),
		},
		{
			Words: "agent vhost remove HOST...",
			Help:  "Remove registrations of RabbitMQ virtual hosts",
			Bind:  deleteCommand(AgentVirtualHosts),
		},
	}
}

func reservationCommands() []cli.Command {
	return []cli.Command{
		{Words: "lease list", Help: "List leases", Bind: listCommand(Leases)},
		{Words: "lease show LEASE", Help: "Show a lease and explain its status", Bind: showCommand(Leases)},
		{
			Words: "lease create NAME",
			Help:  "Create a lease, by default with one reservation of hosts",
			Bind:  createLease,
		},
		{
			Words:   "lease find-slot",
			Help:    "Find the earliest time at which hosts are free for long enough",
			Details: findSlotHelp,
			Bind:    findSlot,
		},
		{
			Words:   "lease calendar",
			Help:    "Show a chart of hosts, leases and times",
			Details: calendarHelp,
			Bind:    showCalendar,
		},
		{Words: "lease set LEASE", Help: "Change a lease", Bind: setCommand(Leases)},
		{Words: "lease delete LEASE...", Help: "End and delete leases", Bind: deleteCommand(Leases)},
		{
			Words: "lease wait LEASE",
			Help:  "Wait until a lease has a status",
			Bind:  waitCommand(Leases, "active"),
		},

		{Words: "host list", Help: "List hosts", Bind: listCommand(Hosts)},
		{Words: "host show HOST", Help: "Show a host", Bind: showCommand(Hosts)},
		{
			Words: "host create NAME",
			Help:  "Register a host, so that leases can reserve it",
			Bind:  hostCommand("POST"),
		},
		{Words: "host set HOST", Help: "Change a host's properties", Bind: hostCommand("PUT")},
		{
			Words: "host delete HOST...",
			Help:  "Remove hosts from the hosts that leases can reserve",
			Bind:  deleteCommand(Hosts),
		},
	}
}

func placementCommands() []cli.Command {
	return []cli.Command{
		{Words: "provider list", Help: "List resource providers", Bind: listCommand(Providers)},
		{Words: "provider show PROVIDER", Help: "Show a provider and its inventories", Bind: showProvider},
		{Words: "provider create NAME", Help: "Create a provider", Bind: createProvider},
		{Words: "provider set PROVIDER", Help: "Change a provider or its inventories", Bind: setProvider},
		{Words: "provider delete PROVIDER...", Help: "Delete providers", Bind: deleteCommand(Providers)},
		{
			Words:   "provider history PROVIDER",
			Help:    "List the writes that changed a provider's generation",
			Details: historyHelp,
			Bind:    historyCommand(providerHistory),
		},

		{
			Words: "allocation list PROVIDER",
			Help:  "List the allocations against a provider",
			Bind:  listAllocations,
		},
		{
			Words: "allocation show CONSUMER",
			Help:  "Show the allocations of a consumer",
			Bind:  showAllocations,
		},
		{
			Words:   "allocation set CONSUMER",
			Help:    "Replace the allocations of a consumer",
			Details: allocationHelp,
			Bind:    setAllocations,
		},
		{
			Words: "allocation unset CONSUMER",
			Help:  "Delete all allocations of a consumer",
			Bind:  unsetAllocations,
		},
		{
			Words:   "allocation history CONSUMER",
			Help:    "List the writes that changed a consumer's generation",
			Details: historyHelp,
			Bind:    historyCommand(consumerHistory),
		},
		{
			Words:   "candidates explain QUERY",
			Help:    "Explain which filter of a query for allocation candidates removes which providers",
			Details: explainCandidatesHelp,
			Bind:    explainCandidates,
		},
		{
			Words:   "placement migrate-consumers",
			Help:    "Create missing consumer records",
			Details: migrateConsumersHelp,
			Bind:    migrateConsumers,
		},
		{Words: "aggregate show PROVIDER", Help: "Show the aggregates of a provider", Bind: showAggregates},
		{
			Words: "aggregate set PROVIDER [UUID...]",
			Help:  "Replace the aggregates of a provider",
			Bind:  setAggregates,
		},
	}
}

func controllerCommands() []cli.Command {
	return []cli.Command{
		{Words: "journal list", Help: "List journal entries", Bind: listCommand(JournalEntries)},
		{
			Words: "journal show SEQ",
			Help:  "Show a journal entry and explain its state",
			Bind:  showCommand(JournalEntries),
		},
		{Words: "journal retry SEQ", Help: "Send a failed or stuck entry again, now", Bind: retryEntry},
		{
			Words: "journal skip SEQ",
			Help:  "Give up a failed or stuck entry; the controller does not get the change",
			Bind:  skipEntry,
		},
		{Words: "journal pause", Help: "Stop sending entries to the controller", Bind: pauseJournal},
		{
			Words: "journal resume",
			Help:  "Send entries to the controller again, after a pause",
			Bind:  resumeJournal,
		},
		{
			Words: "journal analyze",
			Help:  "Show how long entries took to reach the controller",
			Bind:  analyzeJournal,
		},

		{
			Words: "odl list",
			Help:  "List runs: full syncs, recoveries, audits and repairs",
			Bind:  listCommand(Runs),
		},
		{Words: "odl show RUN", Help: "Show the progress or the result of a run", Bind: showCommand(Runs)},
		{
			Words: "odl sync",
			Help:  "Send the controller every object that is missing or different there",
			Bind:  startRunCommand("full-sync"),
		},
		{
			Words: "odl recover",
			Help:  "Compare failed entries with the controller and resolve them",
			Bind:  startRunCommand("recovery"),
		},
		{
			Words: "odl audit",
			Help:  "List objects that are missing, different or extra at the controller",
			Bind:  auditCommand,
		},
		{
			Words:   "odl repair",
			Help:    "Repair the findings of an audit",
			Details: repairHelp,
			Bind:    repairCommand,
		},
	}
}

func policyCommands() []cli.Command {
	return []cli.Command{
		{
			Words:   "policy list",
			Help:    "List the policy rules in force",
			Details: listPolicyHelp,
			Bind:    listPolicy,
		},
		{
			Words:   "policy check RULE",
			Help:    "Decide a policy rule for a caller and explain the decision",
			Details: checkPolicyHelp,
			Bind:    checkPolicy,
		},
	}
}

func auditCommands() []cli.Command {
	return []cli.Command{
		{
			Words:   "audit list",
			Help:    "List records of the audit log, newest first",
			Details: listAuditHelp,
			Bind:    listAudit,
		},
		{
			Words:   "audit export",
			Help:    "Print records of the audit log as JSON lines, oldest first",
			Details: exportAuditHelp,
			Bind:    exportAudit,
		},
		{
			Words:   "audit verify",
			Help:    "Check the hash chain of the audit log",
			Details: verifyAuditHelp,
			Bind:    verifyAudit,
		},
	}
}

func noteCommands() []cli.Command {
	return []cli.Command{
		{
			Words:   "note list",
			Help:    "List notes that are not delivered to Temporal",
			Details: noteHelp,
			Bind:    listNotes,
		},
		{
			Words:   "note retry [WORKFLOW-ID...]",
			Help:    "Deliver notes that are set aside, now",
			Details: noteHelp,
			Bind:    retryNotes,
		},
	}
}

// Completable lists the resources whose names the completion of the shell offers.
var Completable = []*cli.Resource{Networks, Subnets, Ports, Trunks, Agents, Leases, Hosts, Providers}

// Groups maps the first word of commands, for example `network`, to the help text of this group of commands.
var Groups = map[string]string{
	"network":    "Networks",
	"subnet":     "Subnets: address ranges of networks",
	"port":       "Ports: ACTIVE when all agents have provisioned them",
	"trunk":      "Trunks: parent ports that carry the traffic of subports",
	"agent":      "Networking agents",
	"lease":      "Leases: reservations with a start and an end",
	"host":       "Hosts that leases can reserve",
	"allocation": "Allocations: resources that a consumer uses",
	"aggregate":  "Aggregates of resource providers",
	"candidates": "Allocation candidates",
	"placement":  "Migration of data from an older Placement",
	"provider":   "Resource providers and their inventories",
	"journal":    "Journal entries: changes to be sent to the controller",
	"audit":      "The audit log: who changed which object, and which requests were refused",
	"note":       "Notes: nudges that berth delivers to Temporal",
	"policy":     "Policy rules: who may do what",
	"odl":        "Comparison and repair of the controller's data",
}
