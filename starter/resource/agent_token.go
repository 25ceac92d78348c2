package resource

import (
	"context"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

// AgentTokens is the cli.Resource for the tokens with which agents use the HTTP gateway.
var AgentTokens = &cli.Resource{
	Name: "agent token", Path: "/operator/v1/agent-tokens", PluralKey: "agent_tokens", IDKey: "id", NameKey: "id", IsID: cli.IsUUID,
	Columns: []string{"id", "host", "created_at", "last_used_on"},
}

const tokenHelp = `Creates a token with which the agents of HOST report over HTTP, in the header X-Auth-Token. The token is valid for this host only,
until it is revoked. berth stores only a hash of it, so the token is printed once and cannot be read again. With BERTH_AUTH=noauth the
gateway knows no agent tokens.`

func createAgentToken(*pflag.FlagSet) cli.Action {
	return func(ctx context.Context, s *cli.Session, args []string) error {
		o, err := AgentTokens.Create(ctx, s, cli.Object{"host": args[0]})
		if err != nil {
			return err
		}
		return s.Output.PrintObject(o, []string{"id", "host", "token"})
	}
}
