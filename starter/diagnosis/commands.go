package diagnosis

import "berth/starter/cli"

// Commands returns the commands doctor, why, probe and port watch.
func Commands() []cli.Command {
	return []cli.Command{
		{
			Words:   "port watch PORT",
			Help:    "Follow a port until it is ACTIVE and show what blocks it",
			Details: portWatchHelp,
			Bind:    watchPort,
		},
		{
			Words:   "why OBJECT",
			Help:    "Explain what an object waits for",
			Details: whyHelp,
			Bind:    whyCommand,
		},
		{
			Words:   "doctor",
			Help:    "Check the database, the API, Temporal and the other services",
			Details: doctorHelp,
			Bind:    doctorCommand,
		},
		{
			Words:   "probe",
			Help:    "Check that the process at --url is alive",
			Details: probeHelp,
			Bind:    probeCommand,
		},
	}
}
