package diagnosis

import (
	"context"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

const probeHelp = "For the health checks of containers. The address of the process comes from BERTH_LISTEN.\n" +
	"A process that is alive but not ready needs no restart: it waits for another service."

// probeCommand makes the command that checks the health of the process at the address --url.
func probeCommand(f *pflag.FlagSet) cli.Action {
	ready := f.Bool("ready", false, "check that the process is ready, not only alive")
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		path := "/healthz"
		if *ready {
			path = "/readyz"
		}
		var answer cli.Object
		if err := s.API.Do(ctx, "GET", path, nil, &answer); err != nil {
			return err
		}
		return s.Output.PrintMessage(answer, "ok")
	}
}
