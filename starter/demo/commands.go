package demo

import "berth/starter/cli"

// Commands are the commands of this package.
func Commands() []cli.Command {
	return []cli.Command{
		{Words: "demo", Help: "Demonstrate berth's main tasks with real requests", Details: demoHelp, Bind: demoCommand},
	}
}
