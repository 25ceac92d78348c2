package resource

import (
	"context"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

// AgentVirtualHosts is the cli.Resource for the virtual hosts of RabbitMQ that only the agents of one host
// use.
var AgentVirtualHosts = &cli.Resource{
	Name:      "virtual host of agents",
	Path:      "/operator/v1/agent-vhosts",
	PluralKey: "agent_vhosts",
	IDKey:     "id",
	NameKey:   "host",
	IsID:      cli.IsUUID,
	Columns:   []string{"id", "host", "name", "agent_types", "created_at"},
}

const virtualHostHelp = `Registers the virtual host of RabbitMQ that only the agents of HOST can reach. berth then answers messages in this virtual host only for
HOST. The command does not change RabbitMQ: create the virtual host and its user with rabbitmqctl, and give berth's user the permissions there.`

func addAgentVirtualHost(f *pflag.FlagSet) cli.Action {
	name := f.String("name", "", "name of the virtual host in RabbitMQ (default: the name of the host)")
	types := f.StringArray(
		"type",
		nil,
		"type of agents that the host may report, for example \"Open vSwitch agent\"; may be repeated (default: all types)",
	)
	return func(ctx context.Context, s *cli.Session, args []string) error {
		body := cli.Object{"host": args[0]}
		if *name != "" {
			body["name"] = *name
		}
		if len(*types) > 0 {
			body["agent_types"] = *types
		}
		o, err := AgentVirtualHosts.Create(ctx, s, body)
		if err != nil {
			return err
		}
		return s.Output.PrintObject(o, AgentVirtualHosts.Columns)
	}
}
