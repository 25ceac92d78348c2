package demo

import "berth/starter/cli"

// Commands returns the command demo.
func Commands() []cli.Command {
	return []cli.Command{
		{
			Words:   "demo",
			Help:    "Demonstrate berth's main tasks with real requests",
			Details: demoHelp,
			Bind:    demoCommand,
		},
	}
}
