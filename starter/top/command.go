package top

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/pflag"

	"berth/starter/cli"
)

const topHelp = `The views are: what waits and for whom, hosts, leases, and the journal. Enter opens the row: what waits for the party,
the ports of the host, or the text of ` + "`starter why`" + `. The key ? lists all keys. The program changes nothing.

The view of what waits, and the journal, are for administrators; a member sees the leases of his project. If the
server does not answer, the last data stays with its time, and the program reads again until the server answers.
Without colours if NO_COLOR is set or TERM is dumb.`

// Commands returns the command top.
func Commands() []cli.Command {
	return []cli.Command{{
		Words:   "top",
		Help:    "Show in the whole terminal what waits and for whom, hosts, leases and the journal",
		Details: topHelp,
		Bind:    topCommand,
	}}
}

func topCommand(f *pflag.FlagSet) cli.Action {
	every := f.Duration("every", 2*time.Second, "interval between the reads")
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		if *every < cli.MinInterval {
			return cli.UsageError("--every %s is below the minimum of %s", *every, cli.MinInterval)
		}
		if s.Output.Format != "table" {
			return cli.UsageError("starter top has no output format; it does not support --output %s", s.Output.Format)
		}
		terminal, ok := s.Output.Terminal()
		if !ok {
			return cli.Errorf(
				cli.ExitUsage,
				"`starter why OBJECT` explains one object, `starter port list --watch` prints each change of a list.",
				"starter top needs a terminal, and the standard output is none",
			)
		}
		m := newModel(ctx, s, *every)
		program := tea.NewProgram(
			m,
			tea.WithContext(ctx),
			tea.WithOutput(terminal),
			tea.WithEnvironment(s.Env.Environ()),
			tea.WithoutSignalHandler(), // a signal ends ctx
		)
		if _, err := program.Run(); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			return cli.Errorf(cli.ExitOther, "", "the terminal failed: %s", err)
		}
		return nil
	}
}

// newModel returns the model of a session.
func newModel(ctx context.Context, s *cli.Session, every time.Duration) *model {
	return &model{ctx: ctx, now: s.Now, every: every, color: hasColor(s.Env), views: reader{s}.views()}
}

// hasColor reports whether the terminal has colours: see https://no-color.org.
func hasColor(e cli.Environment) bool {
	_, refused := e.LookupEnv("NO_COLOR")
	return !refused && e.Get("TERM") != "dumb"
}
