package main

// commands is every command there is.
func commands() []command {
	return []command{
		{words: "network list", help: "List networks", do: listing(networks)},
		{words: "network show NETWORK", help: "Show a network", do: showing(networks)},
		{words: "network create NAME", help: "Create a network", do: creating(networks, nil)},
		{words: "network set NETWORK", help: "Change a network", do: setting(networks)},
		{words: "network delete NETWORK...", help: "Delete networks", do: deleting(networks)},

		{words: "subnet list", help: "List subnets", do: listing(subnets)},
		{words: "subnet show SUBNET", help: "Show a subnet", do: showing(subnets)},
		{words: "subnet create NAME", help: "Create a subnet", do: creating(subnets, completeSubnet)},
		{words: "subnet set SUBNET", help: "Change a subnet", do: setting(subnets)},
		{words: "subnet delete SUBNET...", help: "Delete subnets", do: deleting(subnets)},

		{words: "port list", help: "List ports", do: listing(ports)},
		{words: "port show PORT", help: "Show a port and why it is what it is", do: showing(ports)},
		{words: "port create NAME", help: "Create a port", do: creating(ports, needs("network_id", "--network"))},
		{words: "port set PORT", help: "Change a port", do: setting(ports)},
		{words: "port delete PORT...", help: "Delete ports", do: deleting(ports)},
		{words: "port wait PORT", help: "Wait until a port has a status", do: waiting(ports, "active")},
		{words: "port watch PORT", help: "Follow a port until it is ACTIVE: who blocks it, who is done", more: watchHelp, do: watchPort},

		{words: "agent list", help: "List agents", do: listing(agents)},
		{words: "agent show AGENT", help: "Show an agent", do: showing(agents)},
		{words: "agent set AGENT", help: "Change an agent", do: setting(agents)},
		{words: "agent delete AGENT...", help: "Forget agents", do: deleting(agents)},
		{words: "agent report HOST", help: "Report in as an agent, and that ports are done", more: reportHelp, do: agentReport},

		{words: "lease list", help: "List leases", do: listing(leases)},
		{words: "lease show LEASE", help: "Show a lease and why it is what it is", do: showing(leases)},
		{words: "lease create NAME", help: "Create a lease, by default with one reservation of hosts", do: leaseCreate},
		{words: "lease find-slot", help: "Tell the earliest time at which hosts are free for long enough", more: slotHelp, do: findSlot},
		{words: "lease calendar", help: "Draw who holds which host when", more: calendarHelp, do: calendar},
		{words: "lease set LEASE", help: "Change a lease", do: setting(leases)},
		{words: "lease delete LEASE...", help: "End and delete leases", do: deleting(leases)},
		{words: "lease wait LEASE", help: "Wait until a lease has a status", do: waiting(leases, "active")},

		{words: "host list", help: "List hosts", do: listing(hosts)},
		{words: "host show HOST", help: "Show a host", do: showing(hosts)},
		{words: "host create NAME", help: "Register a provider's host for leases", do: hostWrite("POST")},
		{words: "host set HOST", help: "Change a host's properties", do: hostWrite("PUT")},
		{words: "host delete HOST...", help: "Take hosts away from leases", do: deleting(hosts)},

		{words: "provider list", help: "List resource providers", do: listing(providers)},
		{words: "provider show PROVIDER", help: "Show a provider and its inventories", do: providerShow},
		{words: "provider create NAME", help: "Create a provider", do: providerCreate},
		{words: "provider set PROVIDER", help: "Change a provider or its inventories", do: providerSet},
		{words: "provider delete PROVIDER...", help: "Delete providers", do: deleting(providers)},
		{words: "provider history PROVIDER", help: "Tell who moved a provider's generation", more: historyHelp, do: telling(providerHistory)},

		{words: "allocation list PROVIDER", help: "List what consumers hold of a provider", do: allocationList},
		{words: "allocation show CONSUMER", help: "Show what a consumer holds", do: allocationShow},
		{words: "allocation set CONSUMER", help: "Replace what a consumer holds", more: allocationHelp, do: allocationSet},
		{words: "allocation unset CONSUMER", help: "Release all that a consumer holds", do: allocationUnset},
		{words: "allocation history CONSUMER", help: "Tell who moved a consumer's generation", more: historyHelp, do: telling(consumerHistory)},

		{words: "placement migrate-consumers", help: "Give consumers without a record one", more: migrateConsumersHelp, do: migrateConsumers},

		{words: "aggregate show PROVIDER", help: "Show the aggregates of a provider", do: aggregateShow},
		{words: "aggregate set PROVIDER [UUID...]", help: "Replace the aggregates of a provider", do: aggregateSet},

		{words: "journal list", help: "List journal entries", do: listing(entries)},
		{words: "journal show SEQ", help: "Show a journal entry and why it is what it is", do: showing(entries)},
		{words: "journal retry SEQ", help: "Send an entry that failed or is stuck again, now", do: journalRetry},
		{words: "journal skip SEQ", help: "Give an entry up that failed or is stuck; the controller will lack it", do: journalSkip},

		{words: "journal analyze", help: "Tell how long entries took to reach the controller", do: journalAnalyze},

		{words: "odl list", help: "List runs: full syncs, recoveries, audits and repairs", do: listing(runs)},
		{words: "odl show RUN", help: "Show how far a run is, or what came of it", do: showing(runs)},
		{words: "odl sync", help: "Send the controller whatever it lacks or has otherwise", do: odlRun("full-sync")},
		{words: "odl recover", help: "Decide about failed entries by what the controller has", do: odlRun("recovery")},
		{words: "odl audit", help: "List what is missing, different or extra at the controller", do: odlAudit},
		{words: "odl repair", help: "Mend what an audit found", more: repairHelp, do: odlRepair},

		{words: "signal OBJECT", help: "Send an agent's provisioning-complete to a port's workflow", more: signalHelp, do: signalPort},
		{words: "why OBJECT", help: "Tell for whom something waits", more: whyHelp, do: whyObject},
		{words: "migrate", help: "Bring the database's schema up to date", do: migrate},
		{words: "doctor", help: "Check everything that berth needs", do: doctor},
		{words: "probe", help: "Ask whether the process at --url lives", more: probeHelp, do: probeProcess},
		{words: "demo", help: "Run the main job on real requests", more: demoHelp, do: demo},
	}
}

// needs refuses a body without an attribute before the API has to.
func needs(key, flag string) func(object) error {
	return func(body object) error {
		if body[key] == nil {
			return usage("%s is missing", flag)
		}
		return nil
	}
}

func completeSubnet(body object) error {
	if err := needs("network_id", "--network")(body); err != nil {
		return err
	}
	cidr, ok := body["cidr"].(string)
	if !ok {
		return usage("--cidr is missing")
	}
	body["ip_version"] = version(cidr)
	return nil
}
