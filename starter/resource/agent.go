package resource

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

// Agents is the cli.Resource for Neutron's agents.
var Agents = &cli.Resource{
	Name:        "agent",
	Path:        "/networking/v2.0/agents",
	SingularKey: "agent",
	PluralKey:   "agents",
	IDKey:       "id",
	NameKey:     "host",
	NameFilter:  "host",
	IsID:        cli.IsUUID,
	Columns: []string{
		"id",
		"agent_type",
		"host",
		"alive",
		"admin_state_up",
		"heartbeat_timestamp",
		"berth:held",
		"berth:awaited",
	},
	Fields: []cli.Field{
		{
			Flag:    "admin-up",
			Key:     "admin_state_up",
			Help:    "true or false",
			Parse:   cli.Boolean,
			OnlyFor: "set",
		},
		{
			Flag:    "description",
			Key:     "description",
			Help:    "free text",
			Parse:   cli.Text,
			OnlyFor: "set",
		},
	},
}

const reportHelp = `Sends the agent's heartbeat over HTTP. With --port it also reports that the agent has provisioned these ports, and prints
the API's result on each. Agents that are not Temporal clients report in this way.`

func reportCommand(f *pflag.FlagSet) cli.Action {
	agentType := f.String("type", "Open vSwitch agent", "agent_type, for example DHCP agent")
	entity := f.String("entity", "",
		"provisioning entity for --port (default: DHCP for a DHCP agent, else L2)")
	provisioned := f.StringArray("port", nil, "provisioned port, by name or ID; may be repeated")
	return func(ctx context.Context, s *cli.Session, args []string) error {
		state, err := SendHeartbeat(ctx, s, *agentType, args[0])
		if err != nil {
			return err
		}
		if len(*provisioned) == 0 {
			return s.Output.PrintObject(state, []string{"agent_type", "host"})
		}
		if *entity == "" {
			*entity = map[string]string{"DHCP agent": "DHCP"}[*agentType]
		}
		if *entity == "" {
			*entity = "L2"
		}
		reports := []cli.Object{}
		for _, word := range *provisioned {
			id, err := Ports.Resolve(ctx, s, word)
			if err != nil {
				return err
			}
			reports = append(reports, cli.Object{"port": id, "entity": *entity, "host": args[0]})
		}
		return postReports(ctx, s, reports)
	}
}

// SendHeartbeat sends the heartbeat of an agent on a host to the API and returns the API's answer.
func SendHeartbeat(ctx context.Context, s *cli.Session, agentType, host string) (cli.Object, error) {
	kind := strings.ToLower(strings.TrimSuffix(agentType, " agent"))
	binary := "neutron-" + strings.ReplaceAll(kind, " ", "") + "-agent"
	body := cli.Object{
		"agent_type":     agentType,
		"host":           host,
		"binary":         binary,
		"topic":          "N/A",
		"configurations": cli.Object{},
	}
	var o cli.Object
	if err := s.API.Do(ctx, "POST", "/agent/v1/state", body, &o); err != nil {
		return nil, err
	}
	if o == nil {
		o = cli.Object{}
	}
	o["agent_type"], o["host"] = agentType, host
	return o, nil
}

// postReports sends provisioning reports to the HTTP API for agents (/agent/v1) and prints the results.
func postReports(ctx context.Context, s *cli.Session, reports []cli.Object) error {
	var answer cli.Object
	if err := s.API.Do(ctx, "POST", "/agent/v1/reports", cli.Object{"reports": reports}, &answer); err != nil {
		return err
	}
	all, ok := cli.Objects(answer["verdicts"])
	if !ok {
		return cli.Errorf(cli.ExitOther, "Is --url a berth API?",
			"the answer does not come from berth's API for agents: it has no list `verdicts`")
	}
	return s.Output.PrintList(all, []string{"port", "result", "status", "remaining"})
}
